package proposals

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

const (
	paceLeast    = 64 << 10
	pacePatience = 10
)

// pacedTable returns a proposer with an open session, which lets little leave at once.
func pacedTable(t *testing.T) *Table {
	t.Helper()
	p := opened(t)
	p.SetPace(Pace{Least: paceLeast, Patience: pacePatience})
	return p
}

func addBytes(t *testing.T, p *Table, size int) *Pending {
	t.Helper()
	q, err := p.Add(consensus.EntryCommand, make([]byte, size), &outcome{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func addMany(t *testing.T, p *Table, n, size int) (all []*Pending) {
	t.Helper()
	for range n {
		all = append(all, addBytes(t, p, size))
	}
	return all
}

func bytesOf(all []left) (n int) {
	for i := range all {
		n += len(all[i].Payload)
	}
	return n
}

// Ensure that a small value passes a burst of large ones that no link has carried yet, and that all of the burst leaves in
// the end.
func TestTable_Take_smallPassesBurst(t *testing.T) {
	p := pacedTable(t)
	const burst, size = 20, 16 << 10
	addMany(t, p, burst, size)
	small := addBytes(t, p, 10)
	first := leave(p, 1)
	if got := bytesOf(first); got != paceLeast+10 {
		t.Fatalf("%d bytes leave at once, want %d", got, paceLeast+10)
	}
	if !p.sent(small) || p.Held() != burst-paceLeast/size || p.Waiting() {
		t.Errorf("the small one has left: %v; %d are held, more leave: %v", p.sent(small), p.Held(), p.Waiting())
	}
	sent := bytesOf(first)
	for tick := uint64(20); len(first) > 0; tick += 20 {
		p.Tick(tick)
		applied(p, first)
		first = leave(p, tick)
		if got := bytesOf(first); got > paceLeast {
			t.Errorf("%d bytes leave at once although their ends come late", got)
		}
		sent += bytesOf(first)
	}
	if sent != burst*size+10 || p.Held() != 0 {
		t.Errorf("%d bytes have left, want %d; %d are held", sent, burst*size+10, p.Held())
	}
}

// Ensure that more leaves at once while ends come in time, twice as much each time, and as much as ends in twice the patience
// where they do not.
func TestTable_Take_followsLink(t *testing.T) {
	p := pacedTable(t)
	addMany(t, p, 1000, 16<<10)
	now := uint64(1)
	round := func(trip uint64) int {
		sent := leave(p, now)
		now += trip
		p.Tick(now)
		applied(p, sent)
		return bytesOf(sent)
	}
	for want := paceLeast; want <= 16*paceLeast; want *= 2 {
		if got := round(2); got != want {
			t.Fatalf("%d bytes leave at once, want %d", got, want)
		}
	}
	round(8 * pacePatience) // 32 times paceLeast: in twice the patience a quarter of it ends
	if got := round(8 * pacePatience); got != 8*paceLeast {
		t.Errorf("%d bytes leave at once, want %d", got, 8*paceLeast)
	}
	round(100 * pacePatience)
	if got := round(2); got != paceLeast {
		t.Errorf("%d bytes leave at once, want at least %d", got, paceLeast)
	}
}

// Ensure that a value larger than what may be on its way leaves alone.
func TestTable_Take_larger(t *testing.T) {
	p := pacedTable(t)
	addMany(t, p, 2, 2*paceLeast)
	first := leave(p, 1)
	if len(first) != 1 || len(leave(p, 2)) != 0 {
		t.Fatalf("%d leave, want one", len(first))
	}
	applied(p, first)
	if len(leave(p, 3)) != 1 {
		t.Error("the other one does not leave after it")
	}
}

// Ensure that what has left and is given up by its caller still counts as on its way, until something later ends or it must be
// lost: callers who give up fast would fill the links else.
func TestTable_Abandon_staysOnItsWay(t *testing.T) {
	for _, ends := range []bool{true, false} {
		p := pacedTable(t)
		sent := addMany(t, p, 4, 16<<10)
		waits := addBytes(t, p, 16<<10)
		leave(p, 1)
		small := addBytes(t, p, 10)
		for _, q := range sent {
			p.Abandon(q)
		}
		all := leave(p, 2)
		if p.sent(waits) || !p.sent(small) {
			t.Fatal("given up, and no longer on its way")
		}
		tick := uint64(3)
		if ends {
			applied(p, all) // the small one, which left later
		} else {
			tick = 1 + lostAfter*pacePatience
		}
		p.Tick(tick)
		if leave(p, tick); !p.sent(waits) {
			t.Errorf("a later one has ended: %v; at tick %d nothing leaves", ends, tick)
		}
	}
}

// Ensure that what is repeated is not held, and takes no room twice.
func TestTable_Resend_takesNoRoom(t *testing.T) {
	p := pacedTable(t)
	addMany(t, p, 8, 16<<10)
	leave(p, 1)
	for range 3 {
		p.Resend(1)
		if got := bytesOf(leave(p, 1)); got != paceLeast {
			t.Fatalf("%d bytes are repeated, want %d", got, paceLeast)
		}
	}
}

// Ensure that a change of the configuration waits for nothing.
func TestTable_Take_changePassesAll(t *testing.T) {
	p := pacedTable(t)
	addMany(t, p, 1000, paceLeast/largePart)
	leave(p, 1)
	if _, err := p.Add(consensus.EntryConfig, []byte("x"), &outcome{}); err != nil {
		t.Fatal(err)
	}
	if got := leave(p, 2); len(got) != 1 || got[0].Kind != consensus.EntryConfig {
		t.Errorf("%d leave, want the change", len(got))
	}
}

// Ensure that a native client's commands leave in the order in which they came, and that all of them end.
func TestTable_AddFor_keepsOrder(t *testing.T) {
	p := pacedTable(t)
	session := consensus.ClientSession(9, 1)
	const n = 40
	for i := range uint64(n) {
		size := 10
		if i%2 == 0 {
			size = 16 << 10
		}
		id := consensus.ProposalID{Session: session, Sequence: i + 1}
		if err := p.AddFor(id, make([]byte, size), &outcome{}, false); err != nil {
			t.Fatal(err)
		}
	}
	next := uint64(1)
	for tick := uint64(1); ; tick++ {
		sent := leave(p, tick)
		if len(sent) == 0 {
			break
		}
		for _, one := range sent {
			if one.ID.Sequence != next {
				t.Fatalf("%v leaves, want number %d", one.ID, next)
			}
			next++
		}
		applied(p, sent, make([]kv.Result, len(sent))...)
	}
	if next != n+1 {
		t.Errorf("%d have left, want %d", next-1, n)
	}
}

// Ensure that a member that stops ends what is held, and that one without a leader keeps nothing of callers who gave up.
func TestTable_held_ends(t *testing.T) {
	p := pacedTable(t)
	addMany(t, p, 4, 16<<10)
	o := &outcome{}
	if _, err := p.Add(consensus.EntryCommand, make([]byte, 16<<10), o); err != nil {
		t.Fatal(err)
	}
	for range 3 * mostSpent {
		p.Abandon(addBytes(t, p, 16<<10))
		p.Abandon(addBytes(t, p, 10))
	}
	p.Tick(2)
	if got := len(p.own.waiting()); got > mostSpent {
		t.Errorf("%d are kept of which nobody waits for more than 5", got)
	}
	p.FailAll(errStopped)
	if o.times != 1 || o.err != errStopped {
		t.Errorf("got %+v, want one end", o)
	}
}
