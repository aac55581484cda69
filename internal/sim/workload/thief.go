package workload

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
)

// thiefPauses is how many times longer a thief pauses than other clients.
const thiefPauses = 4

// thief is a client that knows the ids of other clients, their sessions and how far they have numbered their writes, as
// anybody may who reads logs. It does not have their keys, and makes keys of their ids.
type thief struct {
	load    *Load
	victims []*native
}

func startThief(l *Load, victims []*native) {
	t := &thief{load: l, victims: victims}
	l.world.After(thiefPauses*l.pause(), t.next)
}

// next tries to write in the place of a client's next write. If that succeeds, the client will be told that its own write
// is done, which nobody has applied.
func (t *thief) next() {
	l := t.load
	if l.stopped {
		return
	}
	l.world.After(thiefPauses*l.pause(), t.next)
	victim, target := t.victims[l.rng.IntN(len(t.victims))], l.target()
	if target == nil || victim.session.Number == 0 {
		return
	}
	key := make([]byte, quoratepb.ClientKeyBytes)
	binary.BigEndian.PutUint64(key, uint64(victim.owner.ID))
	session := victim.session
	command := &kv.Command{Put: &kv.PutOp{Key: []byte("stolen"), Value: []byte("by a thief")}}
	target.ProposeFor(key, session.Number, victim.sequence+1, command, func(r kv.Result, err error) {
		if err == nil && r.Err == nil {
			l.suite.Report("session",
				fmt.Sprintf("somebody without the key of %v wrote in its session %v", victim.owner.ID, session))
		}
	})
}
