"""Packages the chart into dist/: `make chart-package`."""

from tests.chart.helm import CHART, helm

if __name__ == "__main__":
    print(helm("package", str(CHART), "--destination", str(CHART.parent / "dist")), end="")
