// Package members is the page of the console that shows the members: what each is and how far it is, how long messages between
// them take, and which of them may fail together.
//
// The leader's view comes from Membership.Describe. Without a leader, or if it does not answer in time, the page shows what the
// members say themselves (package observed), and says so.
//
// All functions may be called concurrently.
package members
