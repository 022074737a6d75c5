"""The processes of a training: what they tell each other, and how many there are. Read in this order:

ranks      who they are, how they meet, add up gradients and end
shared     the memory that they share
division   how many processes, and parts of a batch, serve so many cores
watch      who of those that torchrun started is still there
"""
