// Package gate is the interceptor of every call: it admits or refuses the call, counts it and, if the call asked for a leader,
// ends it when there has been none for too long.
//
// It knows of a method only its name and which members may serve it; what a call does is the service's.
//
// The main type is Gate: Unary and Stream are gRPC's interceptors, Pass is for services that need none. A Method holds the
// counters of one method; Collect shows them.
//
// Invariants:
//  1. Nothing is answered from a state that is known to be wrong, or by a member whose cluster was recovered without it,
//     but for methods that show how the member itself is.
//  2. A learner serves only the methods that say so, and serializable ranges.
//  3. Every call that begins is counted once when it ends, under its code.
//
// All methods may be called concurrently; the counters are atomics.
package gate
