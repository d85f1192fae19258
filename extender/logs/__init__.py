"""Log output in the formats of Kubernetes components: klog text, or JSON.

May import `basics`. Contains no scheduling logic.
"""
