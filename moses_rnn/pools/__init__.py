"""Who works: threads, processes, the actors of a Ray cluster, any executor; fed ahead and answered in order."""
