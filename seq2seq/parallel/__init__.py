"""The processes of a run: what they tell each other, and how many there are. Read in this order:

ranks      who they are, how they meet, add up gradients and end
division   how many processes, and parts of a batch, serve so many cores
watch      who of those that torchrun started is still there
follower   what every one does that is not the leader
"""
