package typed

// Emptied is what a member is started with that lost its data. Without either flag it would found a cluster of one on loopback
// addresses, and not start on others.
const Emptied = "an empty directory and its flags, --initial-cluster or --join among them"

// StartOver says how a member gets its data from the others, in this order: the cluster resets a member only once it says that
// it lost its disk. directory and process say in words what is moved aside and what is started; more is what it is started with
// beside, such as "a new key, "; member is its name.
func StartOver(directory, process, more, member string) string {
	return "move " + directory + " aside, start " + process + " with " + more + Emptied + ", and run `" +
		Line("quorate", "member", "reset", member) + "` at a member that serves"
}
