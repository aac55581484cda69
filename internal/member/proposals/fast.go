package proposals

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// maxFastBytes is up to which size a command is offered to all voters. A larger one costs more time on the wire, twice to each
// voter, than a round trip saves, and fills their pools.
const maxFastBytes = 64 << 10

// mayBeFast reports whether the result of a proposal can be known before it is applied, it changes keys, and whether that
// pays. Everything else answers with a revision that depends on what comes before it.
func mayBeFast(p *consensus.Proposal) bool {
	return p.Kind == consensus.EntryCommand && len(p.Payload) <= maxFastBytes && kv.ChangesKeys(p.Payload)
}
