package transport

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Presence is what a look at one peer URL has found.
type Presence = identity.Presence

// The findings.
const (
	Silent     = identity.Silent
	Present    = identity.Present
	Another    = identity.Another
	Empty      = identity.Empty
	Unsure     = identity.Unsure
	NoPeerPort = identity.NoPeerPort
)

// EmptyAt says what an Empty look at a URL has found, and where to stop it.
func EmptyAt(name, url string) string { return identity.EmptyAt(name, url) }

// ErrUnreachable means that a member's host did not answer at all: it may be down, or the network between may be.
var ErrUnreachable = errors.New("transport: the host cannot be reached")

// methodFind asks a process for its cluster and its member id, and for nothing else. The body is a challenge.
//
// The hello of the answer is followed by one byte of bits, and, if the process has a data directory, by the HMAC of the
// challenge under its storage id: it shows whoever knows a directory whether it is that one, and tells nobody else which one
// it is.
const methodFind = "transport.find"

// isEmpty is the bit of an answer that says that the process has no data of the member.
const isEmpty = 1 << 0

// found answers methodFind. Which data directory speaks for this member is for members only.
func (t *Transport) found(challenge []byte) *outFrame {
	own := t.guard.claims.Own()
	storage := own.Storage
	own.Storage = consensus.NoStorage
	answer := hello{version: t.version, claim: own}.append(nil)
	bits := byte(0)
	if own.Empty {
		bits |= isEmpty
	}
	if answer = append(answer, bits); len(challenge) == challengeBytes && !storage.IsZero() {
		answer = append(answer, proofOf(storage, challenge)...)
	}
	return answerFrame(answer)
}

// proofOf is how a process shows that its data directory is the one that is sought, without naming it.
func proofOf(storage consensus.StorageID, challenge []byte) []byte {
	sum := hmac.New(sha256.New, storage[:])
	sum.Write([]byte(methodFind))
	sum.Write(challenge)
	return sum.Sum(nil)
}

// readFound reads the answer to methodFind. Its claim bears the storage id that is sought if the process has shown that it has
// that one, identity.OtherStorage if it has shown another one, and none if nothing is known.
func readFound(answer, challenge []byte, sought consensus.StorageID) (identity.Claim, error) {
	h, rest, err := decodeHello(answer)
	if err != nil {
		return identity.Claim{}, err
	}
	if len(rest) == 0 {
		return identity.Claim{}, fmt.Errorf("%w: short answer", ErrHandshake)
	}
	h.claim.Empty, rest = rest[0]&isEmpty != 0, rest[1:]
	switch {
	case len(rest) < sha256.Size || sought.IsZero():
	case hmac.Equal(rest[:sha256.Size], proofOf(sought, challenge)):
		h.claim.Storage = sought
	default:
		h.claim.Storage = identity.OtherStorage
	}
	return h.claim, nil
}

// Find finds out whether a member listens at a peer URL, without asking it for anything: it answers although it has no
// leader. The error says more about Unsure, and is a *NoPeerPortError for NoPeerPort. Only the TLS and time options are used.
func Find(ctx context.Context, o Options, sought identity.Sought, url string) (Presence, error) {
	o.setDefaults()
	a, err := parseURL(url)
	if err != nil {
		return Unsure, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, a.network, a.target)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), a.network == "unix" && errors.Is(err, os.ErrNotExist):
		return judge(&identity.Sight{Refused: true}, sought), nil
	case err != nil: // a broken network looks the same as a broken host, and the member may serve others
		return judge(&identity.Sight{}, sought), fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := conn.Close(); err != nil {
		return Unsure, fmt.Errorf("transport: close a connection to %s: %w", url, err)
	}
	sight, err := look(ctx, &o, sought, url)
	presence := judge(&sight, sought)
	switch {
	case presence == Present || presence == Another || presence == Empty:
		return presence, nil
	case err == nil:
		err = errors.New("what answers does not say which member it is")
	}
	return presence, err
}

func judge(s *identity.Sight, sought identity.Sought) Presence {
	return s.Judge(sought, identity.Rules{})
}

// look asks the process that listens at a peer URL which member it is. The error says more about a sight without a claim.
func look(ctx context.Context, o *Options, sought identity.Sought, url string) (identity.Sight, error) {
	challenge := make([]byte, challengeBytes)
	_, _ = rand.Read(challenge) // it never fails
	sent := hello{version: protocolVersion, to: sought.Member, claim: identity.Claim{Cluster: sought.Cluster}}
	answer, failed := callURL(ctx, o, sent, url, methodFind, challenge, maxHelloBytes)
	if failed == nil {
		claim, err := readFound(answer, challenge, sought.Storage)
		if err != nil {
			return identity.Sight{}, fmt.Errorf("what answers does not say which member it is: %w", err)
		}
		return identity.Sight{Claim: &claim}, nil
	}
	named := identity.Read(status.Convert(failed).Message())
	if named != nil && status.Code(failed) == codes.FailedPrecondition {
		return identity.Sight{Refusal: named}, named
	}
	var other *NoPeerPortError
	if errors.As(Explain(ctx, *o, url, failed), &other) {
		return identity.Sight{NoPeerPort: true}, other
	}
	if errors.Is(failed, ErrNeedsTLS) {
		return identity.Sight{}, failed
	}
	return identity.Sight{}, errors.New(status.Convert(failed).Message())
}

// Find finds out whether a member of this cluster listens at a peer URL.
func (t *Transport) Find(ctx context.Context, id consensus.MemberID, url string) (Presence, error) {
	known, _ := t.guard.config.Load().Member(id)
	sought := identity.Sought{Cluster: t.options.Self.Cluster, Member: id, Storage: known.Storage}
	presence, err := Find(ctx, t.options, sought, url)
	t.strays.note(id, url, presence, time.Now())
	return presence, err
}

// LookForStrays looks again at the processes without data that were found where a member was looked for.
func (t *Transport) LookForStrays(ctx context.Context) {
	for _, at := range t.strays.all(time.Now()) {
		asked, cancel := context.WithTimeout(ctx, t.options.Times.Dial)
		_, _ = t.Find(asked, at.member, at.url) // it notes what it has found
		cancel()
	}
}

// Strays tells of the processes without data that were started as members which are connected from elsewhere, and what to do.
func (t *Transport) Strays() (texts []string) {
	found := t.strays.all(time.Now())
	for _, m := range t.guard.config.Load().Members {
		if _, up := t.ConnectedSince(m.ID); !up {
			continue
		}
		name := m.Name
		if name == "" {
			name = m.ID.String()
		}
		for _, at := range found {
			if at.member == m.ID {
				texts = append(texts, fmt.Sprintf("%s runs with its data at %s, and %s; that one is not %s and takes no part",
					name, strings.Join(m.PeerURLs, ","), identity.EmptyAt(name, at.url), name))
			}
		}
	}
	return texts
}
