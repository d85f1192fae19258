"""Builds Helm: `make helm`."""

from tests.chart.programs import MODULE
from tests.go_build import main

if __name__ == "__main__":
    # Unless told, `helm template` would speak for Kubernetes 1.20.
    kubernetes = {"k8sVersionMajor": "1", "k8sVersionMinor": "36"}
    places = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    stamps = {f"{place}.{field}": value for place in places for field, value in kubernetes.items()}
    main(MODULE, {"helm.sh/helm/v3/internal/version.version": MODULE.version(), **stamps})
