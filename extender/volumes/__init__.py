"""What plugins need to know of persistent volumes.

Inside: claims and what they ask for, what was promised to pods, volumes and storage in stock, matching, provisioning,
what nodes have attached, and the migration of old drivers to CSI. May import cluster, config, objects and basics. Says
where volumes can be had; never what follows for a node, which plugins say.
"""
