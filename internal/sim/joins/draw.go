package joins

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Draw draws what a process asks on a machine that is described so. old is a member that runs: it may be replaced, and dies
// before that or does not. others are what other processes have asked.
func Draw(
	rng *rand.Rand, at consensus.Member, old consensus.MemberID, others []autopilot.JoinRequest,
) (request autopilot.JoinRequest, dies bool) {
	request = autopilot.JoinRequest{Name: at.Name, PeerURLs: at.PeerURLs}
	switch draw := rng.IntN(10); {
	case draw < 2:
	case draw < 4:
		request.Learner = true
	case draw < 9:
		request.Replaces = old.String()
		return request, draw < 7
	case len(others) > 0: // it is started where another one is, or was
		if twin := dice.Pick(rng, others...); twin.Replaces == "" {
			request.Name, request.PeerURLs = twin.Name, twin.PeerURLs
		}
	}
	return request, false
}
