"""Who works on the parts of a job: threads of this process, or a Ray cluster."""
