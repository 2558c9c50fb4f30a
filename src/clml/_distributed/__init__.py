"""Training and predicting on partitions of rows, and on clusters."""
