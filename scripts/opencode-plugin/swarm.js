const PROGRAM = "swarm";
