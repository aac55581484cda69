package memory

const (
	// MinLimit is the least memory that a member can work in.
	MinLimit = 128 << 20
	// DefaultMost is what a member takes for itself, at most, if no flag says how much it may have.
	DefaultMost = 4 << 30

	// program is what the code of the process takes: pages of its file, which the Go runtime does not count, and 4 MiB by which
	// that misses its limit where large values come and go fast.
	program = 36 << 20
	// units is into how many parts the rest is divided.
	units = 64
	// MemTables is how many memtables a store has at most: one is filled, one is written to disk, two wait for that.
	MemTables = 4
)

// Shares are the bounds of a member's parts, in bytes.
type Shares struct {
	Limit int64 // of the process
	Heap  int64 // of what the Go runtime takes from the system

	MemTable int64 // one of MemTables
	Blocks   int64 // cache of the store's blocks
	Versions int64 // cache of current versions
	Counts   int64 // how the numbers of keys by interval changed, and half as much for the intervals

	Log       Log
	Answers   int64 // to clients, all of them, each counted twice until it is encoded
	Answer    int64 // one of them
	Clients   Clients
	Watch     Watch
	Packing   int64 // compression of the streams between members
	Peers     int64 // what those hold who connect to the peer port, until they are known as members
	Proposals int64 // that wait for their results: those of this member, and as much for native clients
	Backups   int64 // that are being written, all of them
	Tokens    int64 // what is remembered of the use of simple tokens
	Audit     int64 // records of calls that wait for an output
	Top       int64 // counts of the busiest prefixes and clients
	Console   int64 // sections of its pages that were shown last
	Shipped   Shipped
	// Proof is of the continuous backup: its stores, an object of the place, and what is known of the others.
	Proof int64
	// Deletion is of the keys that one command deletes. Applying holds up to ten times that for a moment, the rest of it of
	// what other parts do not use.
	Deletion int64
	State    State
}

// State bounds replicated state that every member holds in memory. The member that proposes a command looks at these: what is
// applied must not depend on them.
type State struct {
	Leases   int64 // each as lease.EachBytes
	Users    int64 // as users and roles count themselves, which is half of what they take at most
	Sessions int64 // of native clients
	Bounds   int64 // first and last keys of the store's tables
}

// Admits returns how much of it clients may ask for: three quarters. The rest is for what is under way to the log at all
// members when that is reached, so that a member can start with whatever was admitted.
func (s State) Admits() State {
	return State{Leases: s.Leases / 4 * 3, Users: s.Users / 4 * 3, Sessions: s.Sessions / 4 * 3, Bounds: s.Bounds / 4 * 3}
}

// Least returns the smaller one of each.
func (s State) Least(of State) State {
	return State{Leases: min(s.Leases, of.Leases), Users: min(s.Users, of.Users), Sessions: min(s.Sessions, of.Sessions),
		Bounds: min(s.Bounds, of.Bounds)}
}

// Shipped bounds what a continuous backup holds.
type Shipped struct {
	Kept    int64 // entries that were applied last, at each member
	Waiting int64 // what was sealed, or is about to be, and is not at the place
	Place   int64 // operations on the place, and names of what is there
}

// Log bounds the log that is held in memory.
type Log struct {
	CatchUp     int64 // applied entries kept for followers that were away
	Unflushed   int64 // entries that the store has not on disk, from which on it writes them there
	Applying    int64 // entries handed to the state machine
	Unapplied   int64 // committed entries that are not applied
	Uncommitted int64
	Repeats     int64 // where a leader looks for repeated proposals, while commits are late
	Snapshot    int64 // all of it, while a snapshot is sent
}

// Watch bounds what is kept for watchers.
type Watch struct {
	Stream   int64 // events that wait in one stream
	Host     int64 // events that wait in the streams of one client host
	Total    int64 // events that wait in all streams
	History  int64 // recent events, for watchers that are a little behind
	Watchers int64 // watchers, of which one client host has as much as is free for the others
}

// Clients bounds what clients hold by being there: connections, streams and calls, requests that arrive, wait or are served,
// and answers that no client reads.
type Clients struct {
	Total    int64 // of all client hosts; one host has at most as much as is free for the others
	Renewals int64 // streams that renew leases, when Total has no room
	Metrics  int64 // connections of metrics URLs
}

// Divide says what each part of a process that may have limit bytes gets. A limit below MinLimit counts as that.
//
// Write buffers and caches grow to what most members need, because the system caches the store's files anyway; what clients
// can ask for at once gets the rest. Of what exceeds 4 GiB the cache of blocks gets half.
func Divide(limit int64) Shares {
	limit = max(limit, MinLimit)
	part := func(parts, most int64) int64 { return min((limit-program)/units*parts, most) }
	s := Shares{
		Limit:    limit,
		Heap:     (limit - program) / units * (units - 2), // the runtime may miss its limit by some percent
		MemTable: part(2, 32<<20),
		Blocks:   part(3, mostBlocks) + max(0, limit-DefaultMost)/2,
		Versions: part(6, 96<<20) / 4,
		Counts:   part(1, 8<<20),
		Log: Log{
			CatchUp:     part(1, 16<<20),
			Unflushed:   part(4, 128<<20),
			Applying:    part(1, 64<<20),
			Unapplied:   part(3, 256<<20),
			Uncommitted: part(3, 256<<20) - part(1, 16<<20)/4,
			Repeats:     part(1, 16<<20) / 4,
		},
		Answers: part(8, 1<<30),
		Answer:  part(8, 512<<20),
		Clients: Clients{
			Total:    part(8, 1<<30),
			Renewals: part(1, 32<<20) / 2,
			Metrics:  part(1, 32<<20) / 2,
		},
		Watch: Watch{
			Stream:   part(1, 4<<20),
			Host:     part(2, 64<<20),
			Total:    part(4, 256<<20),
			History:  part(1, 16<<20) / 2,
			Watchers: part(3, 512<<20),
		},
		Packing:   part(1, 32<<20) / 2,
		Peers:     part(1, 64<<20),
		Proposals: part(2, 256<<20),
		Backups:   part(4, 512<<20) / 4,
		Tokens:    part(1, 32<<20) / 4,
		Audit:     part(1, 16<<20) / 4,
		Top:       part(1, 8<<20) / 4,
		Console:   part(1, 16<<20) / 4,
		Shipped:   Shipped{Kept: part(3, 256<<20) / 4, Waiting: part(1, 64<<20) / 4},
		Deletion:  part(1, 256<<20),
		State: State{
			Users:    part(1, 256<<20) / 4,
			Sessions: part(1, 40<<20) / 2,
			Bounds:   part(1, 256<<20),
		},
	}
	// The log has what answers leave, and leases what the store leaves.
	s.Log.Snapshot = min(part(8+11, 2<<30)-s.Answers, 1<<30)
	s.State.Leases = min(part(8+3+1, 2<<30)-MemTables*s.MemTable-part(3, mostBlocks), 512<<20)
	// A continuous backup has what versions and counts leave, and, where that is little, a unit of what blocks have. Shipping
	// comes before proofs.
	left := part(12, 2<<30)/4 - s.Versions - 3*s.Counts/2
	ofBlocks := min(part(3, mostBlocks)/3, max(0, leastBackup-left))
	s.Blocks -= ofBlocks
	left += ofBlocks
	s.Shipped.Place = min(max(left/4, min(left/4*3, leastPlace)), 36<<20)
	s.Proof = min(left-s.Shipped.Place, 96<<20)
	return s
}

const (
	mostBlocks  = 32 << 20             // of the limit up to DefaultMost
	leastBackup = mostBlocks/3 + 4<<20 // where blocks have the most, versions and counts leave 4 MiB
	leastPlace  = 6 << 20              // that a proof leaves, where there is as much
)
