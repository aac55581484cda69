// Package identity decides which processes may speak for which members, why one is refused, and when the members of a new
// cluster may begin.
//
// A Claim is what a process says of itself: cluster, epoch, member id, the storage id of its data directory, and its life.
// A Guard compares claims with the configuration and with what was seen before; a Founder does so while there is no
// configuration yet. Counts decides about single messages. All are pure: no clock, no I/O, no goroutine; the transport and
// the simulator use the same ones. A Guard and a Founder belong to one goroutine at a time.
//
// Invariants:
//  1. A member is bound to one storage id, once. A claim of that member with another one is refused, not ignored.
//  2. A message of a member that is bound nowhere is never counted, but in a cluster that has bound no member yet.
//  3. The members of a new cluster begin once each of them has the storage ids of all on its disk, and knows that all others
//     have the same. Each writes that list once, so that no two lists can both be begun with.
//  4. Of one storage id a life that is not above the highest proved is a copy from the past, and is refused for ever; one that
//     is above it is refused while the one before still speaks. A life is proved by Evidence, not by what its process says:
//     until then the earlier process keeps its place, and nothing that this one says in the member's name is heard.
//  5. Members of other epochs are told apart by name; nothing else passes between them.
//  6. The claim of a process counts only as far as Evidence.Believed says, and a member is where Recognise says: all decisions
//     about who is there, and who is not, are made by these two.
//
// The rules and what they leave open: docs/adr/0020-who-may-vote.md.
package identity
