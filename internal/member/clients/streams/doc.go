// Package streams is the member's end of the streams of native clients: what it decides, without goroutines, timers or gRPC.
//
// A client sends messages: it opens and retires sessions, proposes, offers proposals to the leader and asks voters to record
// them. A Stream takes one message after the other (Take, Go), decides about each proposal and record in it, and says what
// there is to send (Next): answers, verdicts, sessions that were opened, and how the cluster is. Package rpc/writerapi drives
// it with goroutines that receive and send; the simulator drives the same with events.
//
// The main types are Streams, of which a member has one, and Stream. A Stream never waits. Where it cannot go on it says what
// it needs: Go returns a Need, and its driver waits for that. Ports are the member (Member, Clients), etcd's requests
// (Requests) and the driver (Driver); the time of a status comes with Next.
//
// Invariants:
//  1. A proposal that has entered a stream is answered once, or given up when the stream ends.
//  2. A client acts under its own sessions only, whatever its messages say.
//  3. The proposals and bytes that a stream holds are bounded, also if the client does not read.
//  4. A repeated proposal is admitted again: only the log can give the answer of the first attempt.
//  5. A stream proposes what it has checked, and offers what is to be offered, before it waits for room or a turn.
//  6. A client is told each state of the cluster that lasts until there is something to send.
//
// The methods of a Stream that take messages (Take, Go, Turning, Yield, Turned, Offering) belong to one goroutine, Next to one,
// and the others may be called by any. No port is called with a lock held, but for Driver.
package streams
