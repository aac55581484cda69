package apply

import (
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/storage/engine"
)

// fits counts the leases that Open would keep in memory, and returns a memory.LeasesError if they take more than most. It keeps
// none, so that a process with too little memory for a store reports that, and is not killed.
func fits(eng engine.Engine, most int64) error {
	if most == 0 {
		return nil
	}
	count := int64(0)
	err := scan(eng, []byte{tableLease, lease.GrantedRows}, func([]byte, []byte) error {
		count++
		return nil
	})
	if err != nil {
		return err
	}
	return memory.CheckLeases(count, count*lease.EachBytes, most)
}

// LeasesFit returns a memory.LeasesError if the leases of this machine take more than so many bytes.
func (m *Machine) LeasesFit(most int64) error {
	return memory.CheckLeases(int64(m.leases.Len()), m.LeaseBytes(), most)
}

// LeaseBytes is the memory that the leases of this machine take.
func (m *Machine) LeaseBytes() int64 { return int64(m.leases.Len()) * lease.EachBytes }
