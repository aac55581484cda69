package member

import (
	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// NameOwner returns another member that is called so, as far as is known here, and that no job is about to remove: a
// successor may bear the name of the member that it replaces.
func (m *Member) NameOwner(name string) (consensus.MemberID, bool) {
	machine, release := m.Machine()
	config, _ := machine.Config()
	var view membership.View
	for i := range config.Members {
		known := membership.MemberView{ID: config.Members[i].ID, Name: config.Members[i].Name}
		if published, ok := machine.Published(known.ID); ok && published.Name != "" {
			known.Name = published.Name
		}
		view.Members = append(view.Members, known)
	}
	release()
	return autopilot.NameOwner(&view, m.members.Jobs(), name, m.ID())
}
