"""Write log lines in the formats of Kubernetes components: klog text or JSON.

The package may import `basics`. It contains no scheduling logic.
"""
