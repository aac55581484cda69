package apply

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// AddToChain adds an entry to the chain as Apply does, without applying it, as if it replaced before.
func AddToChain(m *Machine, e *consensus.Entry, before *kv.KeyValue) {
	did := effect{events: []kv.Event{{KV: *before, Prev: before}}}
	m.chain.add(e, 7, &did)
	m.chain.publish(e.Index)
}

// UserRow is the key of a user's row.
func UserRow(name string) []byte { return append([]byte{tableState, rowAuth, 'u'}, name...) }
