// Package proposer is the proposing half of the fast path (CURP, NSDI 2019, section 3.2.1): it counts who accepted a
// proposal at which revision, and says when it is decided.
//
// The main type is Tally: all proposals of one member, or client, that are under way in one term and one configuration. A
// proposal has succeeded once the leader has answered it and a superquorum of voters holds it, the leader being one of
// them, all at the same revision. Whoever uses a Tally forgets it when the term or the configuration changes: answers given
// under different ones are never added up.
package proposer
