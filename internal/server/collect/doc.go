// Package collect lets one member answer for the whole cluster: it asks the others, over the links between members, what they
// observe and what they work for, so that a console or a command that reaches one client port sees all members.
//
// The main type is Collector. It asks by the calls of package member (member.Subject), and looks at the peer port of a member
// that does not answer, so that package doctor can tell one that is down from one that hangs or is cut off. Answer is the
// other side.
//
// Invariants:
//  1. However many callers there are, one collection of a kind is under way, and its result is given to all who ask within
//     a second after it ended.
//  2. A collection takes patience, and the time of an observation of this member: no member that is down, stopped or cut off
//     holds it up any longer.
//  3. An answer of another member is bounded before it is decoded, is decoded alone, and counts only if it is of the member and
//     the cluster that were asked. All answers of a collection together are bounded, too.
//
// All methods may be called concurrently.
package collect
