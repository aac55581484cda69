package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/transport"
)

// faultOf says in a word why a member that was asked gave no answer, and in a sentence. FaultUnlinked, there is no
// connection, and FaultBusy, nothing came in time, are what is known before a look at its peer port.
func faultOf(err error) (word, text string) {
	text = printable.Text(status.Convert(err).Message(), mostText)
	code := status.Code(err)
	switch {
	case errors.Is(err, transport.ErrLargeAnswer), code == codes.ResourceExhausted:
		return doctor.FaultLong, fmt.Sprintf("its answer has more than %d KiB", member.MostTold>>10)
	case code == codes.Unimplemented:
		return doctor.FaultUnsupported, "its build does not know the question"
	case code == codes.DeadlineExceeded, code == codes.Canceled, errors.Is(err, context.DeadlineExceeded):
		return doctor.FaultBusy, "it answers there, and does not say in time what it observes"
	case code == codes.Unavailable, errors.Is(err, transport.ErrUnknownPeer):
		return doctor.FaultUnlinked, "it answers there, and no connection to it stands"
	}
	return doctor.FaultDenied, text
}

// finder looks for a member at a peer URL: Transport.Find.
type finder func(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error)

// mostText bounds a text about a member, in characters.
const mostText = 400

// mostLooks is at how many URLs a member is looked for.
const mostLooks = 4

// looks are what a look at a peer port may find, from the one that says most about the process there.
var looks = []string{doctor.FaultBusy, doctor.FaultUnlinked, doctor.FaultSilent, doctor.FaultClosed, doctor.FaultUnreachable,
	doctor.FaultRefused}

// look finds out what is at the peer URLs of a member that gave no answer. If the member is there, known and why stand.
func look(ctx context.Context, find finder, m *consensus.Member, known, why string) (word, text string) {
	urls := m.PeerURLs[:min(len(m.PeerURLs), mostLooks)]
	words, texts := make([]string, len(urls)), make([]string, len(urls))
	var looking sync.WaitGroup
	for i, url := range urls {
		looking.Go(func() { words[i], texts[i] = lookAt(ctx, find, m.ID, url) })
	}
	looking.Wait()
	for _, word := range looks {
		at := slices.Index(words, word)
		switch {
		case at >= 0 && word == doctor.FaultBusy:
			return known, why
		case at >= 0:
			return word, texts[at]
		}
	}
	return doctor.FaultUnreachable, "it has no peer URL"
}

func lookAt(ctx context.Context, find finder, id consensus.MemberID, url string) (word, text string) {
	presence, err := find(ctx, id, url)
	switch {
	case presence == transport.Present:
		return doctor.FaultBusy, ""
	case presence == transport.Another, presence == transport.Empty, presence == transport.NoPeerPort:
		return doctor.FaultUnlinked, "another process answers"
	case err == nil:
		return doctor.FaultRefused, "connection refused"
	case errors.Is(err, transport.ErrUnreachable):
		return doctor.FaultUnreachable, "no answer"
	case ctx.Err() != nil:
		return doctor.FaultSilent, "a connection is accepted, and nothing is said"
	}
	var refusal *identity.Refusal
	if text := err.Error(); errors.As(err, &refusal) || strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") {
		return doctor.FaultUnlinked, printable.Text(text, mostText)
	}
	return doctor.FaultClosed, "a connection is accepted, and closed before anything is said"
}
