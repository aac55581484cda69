package member

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
)

// appliedConfig reads the configuration that is applied here. Any goroutine may use it.
type appliedConfig struct{ stores *datadir.Stores }

func (c appliedConfig) now() consensus.Config {
	config, _ := c.withID()
	return config
}

func (c appliedConfig) withID() (consensus.Config, consensus.ConfigID) {
	machine, release := c.stores.Machine()
	defer release()
	return machine.Config()
}

// removed reports whether a member was removed for ever, as far as entries are applied here.
func (c appliedConfig) removed(id consensus.MemberID) bool {
	machine, release := c.stores.Machine()
	defer release()
	_, removed := machine.Removed(id)
	return removed
}

// nameOf returns the name of a member for operators.
func (c appliedConfig) nameOf(id consensus.MemberID) string {
	config := c.now()
	if known, ok := config.Member(id); ok && known.Name != "" {
		return known.Name
	}
	return id.String()
}

// started reports whether a member has been up once.
func (c appliedConfig) started(id consensus.MemberID) bool {
	machine, release := c.stores.Machine()
	defer release()
	_, started := machine.Published(id)
	return started
}
