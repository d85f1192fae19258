"""Builds Helm: `make helm`."""

from tests.chart.programs import MODULE
from tests.go_build import main

if __name__ == "__main__":
    # By default, `helm template` assumes Kubernetes 1.20.
    kubernetes = {"k8sVersionMajor": "1", "k8sVersionMinor": "36"}
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    linker_variables = {f"{package}.{field}": value for package in packages for field, value in kubernetes.items()}
    main(MODULE, {"helm.sh/helm/v3/internal/version.version": MODULE.version(), **linker_variables})
