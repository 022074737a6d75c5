"""The processes of a training: what they tell each other. Read in this order:

ranks  who they are, how they meet, add up gradients and end; the memory that they share
watch  who of those that torchrun started is still there
handout  the leader's files, for machines that do not see its disk
"""
