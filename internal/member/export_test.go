package member

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// HeardForTesting returns the time of the last contact with a native client, as far as this member knows while it leads.
func (m *Member) HeardForTesting(client consensus.MemberID) time.Time {
	return m.clients.LastHeard(client)
}
