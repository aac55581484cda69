package joins

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Draw draws the join request of a process on the machine at. old is a running member, which may be replaced, and which dies
// before that or does not. others are the requests of other processes.
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
	case len(others) > 0: // it is started at the URLs of another process
		if twin := dice.Pick(rng, others...); twin.Replaces == "" {
			request.Name, request.PeerURLs = twin.Name, twin.PeerURLs
		}
	}
	return request, false
}
