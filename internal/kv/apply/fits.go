package apply

import (
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/memory"
	"github.com/quorate/quorate/internal/storage/engine"
)

// ClientSessionBytes is what an open session of a native client takes in memory, with a bit for each of its proposals. Its
// results lie on disk.
const ClientSessionBytes = 2 << 10

// fits counts the leases that Open would keep in memory, and returns a memory.StateError if they take more than most. It keeps
// nothing, so that a process with too little memory for a store says so, and is not killed.
func fits(eng engine.Engine, most memory.State) error {
	if most == (memory.State{}) {
		return nil
	}
	var held memory.State
	var leases int64
	err := scan(eng, []byte{tableLease, lease.GrantedRows}, func([]byte, []byte) error {
		leases++
		held.Leases += lease.EachBytes
		return nil
	})
	if err != nil {
		return err
	}
	return memory.Check(held, most, leases)
}

// Held is how much of what clients make longer this machine keeps in memory.
func (m *Machine) Held() memory.State {
	return memory.State{Leases: int64(m.leases.Len()) * lease.EachBytes, Users: int64(m.Users().Bytes()),
		Sessions: int64(len(m.ClientSessions())) * ClientSessionBytes}
}
