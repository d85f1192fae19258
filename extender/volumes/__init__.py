"""What plugins need to know of persistent volumes: claims and their volumes, matching, provisioning, attachments, migration to CSI.

May import cluster, config, objects and basics. Never decides about a node by itself: it says where volumes can be had, plugins say what follows.
"""
