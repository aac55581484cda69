package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

const (
	// joinLimit is how long a cluster is waited for that does not answer, or has no leader. A supervisor may try again:
	// a process that asks twice with the same peer URLs gets the same answer.
	joinLimit = 2 * time.Minute
	// joinAttempt is how long one member may take: it waits for the leader, and for the change to commit.
	joinAttempt = 15 * time.Second
	joinPause   = time.Second
)

// joinByURL asks the members at --join to make this one a member, and returns who it is. Where a member was, and its disk is
// lost, it waits until its place is given to a new one.
func (b *bootstrap) joinByURL(ctx context.Context) (wal.Identity, error) {
	storage, err := b.ownStorage()
	if err != nil {
		return wal.Identity{}, err
	}
	request := autopilot.JoinRequest{
		Name: b.cfg.Name, PeerURLs: urlTexts(b.cfg.Advertise.PeerURLs), Learner: b.cfg.Bootstrap.JoinLearner,
		Replaces: b.cfg.Bootstrap.Replaces,
		Token:    b.cfg.Bootstrap.JoinToken, Storage: storage, Memory: b.memory,
	}
	for {
		own, err := b.askToJoin(ctx, request)
		if err == nil {
			return own, nil
		}
		waited, failed := b.waitAtLost(ctx, storage, request.Replaces, err)
		if failed != nil || !waited {
			return wal.Identity{}, cmp.Or(failed, err)
		}
		request.Replaces = "" // what it named, it named for the member that was here before
	}
}

// waitAtLost waits if this process was refused because a member is expected here that is bound to another data directory. It
// reports whether it waited, so that it is worth asking again.
func (b *bootstrap) waitAtLost(
	ctx context.Context, storage consensus.StorageID, replaces string, refused error,
) (waited bool, err error) {
	var blocked *membership.BlockedError
	var spec *membership.SpecError
	switch {
	case errors.Is(refused, membership.ErrAlreadyStarted), errors.As(refused, &blocked):
	case replaces != "" && errors.As(refused, &spec):
	default:
		return false, nil
	}
	d, err := b.describeJoined(ctx)
	if err != nil {
		return false, nil // what was refused says enough
	}
	p := b.placeIn(d)
	switch {
	case p.isLost():
		_, err := b.awaitPlace(ctx, p, storage, b.describeJoined)
		return true, err
	case p.owner.ID != consensus.NoMember && b.ownerAnswers(ctx, &p, storage):
		return false, fmt.Errorf("cannot join: %s", p.residentText())
	}
	return false, nil
}

// describeJoined returns what the first member at --join says that answers.
func (b *bootstrap) describeJoined(ctx context.Context) (d member.Description, err error) {
	for _, url := range b.cfg.JoinURLs() {
		asked, cancel := context.WithTimeout(ctx, joinPatience)
		d, err = member.Describe(asked, b.asking, url.String())
		cancel()
		if err == nil {
			return d, nil
		}
	}
	return d, err
}

// askToJoin asks until a member says who this process is, or refuses it.
func (b *bootstrap) askToJoin(ctx context.Context, request autopilot.JoinRequest) (wal.Identity, error) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	urls := b.cfg.JoinURLs()
	joiner := autopilot.NewJoiner(len(urls))
	for {
		answer, err := b.ask(limited, urls[joiner.Asks()], request)
		var final *joinRefusal
		switch joiner.Heard(err, !errors.As(err, &final)) {
		case autopilot.JoinDone:
			b.logger.Info("joining a cluster", "cluster", answer.Cluster.String(), "member", answer.ID.String(),
				"members", len(answer.Members), "learner", request.Learner, "replaces", request.Replaces)
			return wal.Identity{
				Cluster: answer.Cluster, Member: answer.ID, Storage: request.Storage, Epoch: answer.Epoch,
			}, nil
		case autopilot.JoinEnd:
			return wal.Identity{}, fmt.Errorf("cannot join: %w", err)
		case autopilot.JoinAsk:
			continue
		}
		err = joiner.Failure()
		pause := time.NewTimer(joinPause)
		select {
		case <-pause.C:
			b.logger.Warn("waiting to join a cluster", "err", err, "waited", time.Since(begun).Round(time.Second).String())
		case <-limited.Done():
			pause.Stop()
			if ctx.Err() != nil {
				return wal.Identity{}, errors.New("stopped before the member had joined")
			}
			return wal.Identity{},
				fmt.Errorf("cannot join: nobody could add this member within %v: %w; correct --join, or "+
					"start the members there", joinLimit, err)
		}
	}
}

// refuseOtherCluster refuses data of another cluster than the one that --join names. The flag stays in unit files: if it
// names the member's own cluster, or no member that answers, it does nothing.
func (b *bootstrap) refuseOtherCluster(ctx context.Context, own consensus.ClusterID) error {
	asked, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	for _, url := range b.cfg.Bootstrap.Join {
		d, err := member.Describe(asked, b.asking, url.String())
		if err == nil && d.Cluster != own {
			return fmt.Errorf("--data-dir %s belongs to a member of cluster %v, and --join %v leads to cluster %v: "+
				"correct or remove --join, or correct --data-dir, if this is a new member: it needs a directory of its "+
				"own", b.cfg.Storage.DataDir, own, url.String(), d.Cluster)
		}
		if err == nil {
			break
		}
	}
	b.logger.Info("--join is ignored: this member belongs to the cluster already", "data-dir", b.cfg.Storage.DataDir)
	return nil
}

// ask asks one member.
func (b *bootstrap) ask(
	ctx context.Context, url config.URL, request autopilot.JoinRequest,
) (autopilot.JoinAnswer, error) {
	asked, cancel := context.WithTimeout(ctx, joinAttempt)
	defer cancel()
	answer, err := member.Join(asked, b.asking, url.String(), request)
	if err == nil && (answer.ID == consensus.NoMember || answer.Cluster == 0) {
		err = status.Error(codes.Unimplemented, "the answer names no member")
	}
	if err != nil {
		return autopilot.JoinAnswer{}, explainJoin(url, transport.Explain(ctx, b.asking, url.String(), err))
	}
	return answer, nil
}

// joinRefusal is an error that no repetition cures.
type joinRefusal struct {
	error
	cause error
}

func (r *joinRefusal) Unwrap() error { return r.cause }

// explainJoin says what to do about the answer of the member at url, and whether it is worth asking again.
func explainJoin(url config.URL, err error) error {
	var refused *membership.RefusedError
	var other *transport.NoPeerPortError
	final := func(advice string) error {
		return &joinRefusal{fmt.Errorf("%s: %s; %s", url, plainStatus(err), advice), err}
	}
	switch {
	case errors.As(err, &other):
		return final("--join takes the peer URL of a member, as in its --listen-peer-urls and `quorate member list`")
	case errors.Is(err, membership.ErrAlreadyStarted):
		return final("if that is lost for ever, `quorate member reset` it, by its name in that list")
	case errors.As(err, &refused) && refused.Reason == consensus.ReasonTooManyLearners:
		return final("promote or remove one, or raise --max-learners of the members")
	case refusesCertificate(err):
		return final(certificateRefused)
	case mismatchedTLS(err):
		return final("correct the scheme of --join, or --peer-trusted-ca-file, --peer-cert-file and --peer-key-file")
	case autopilot.JoinPasses(err), retried(err):
		return fmt.Errorf("%s: %s", url, plainStatus(err))
	case refused != nil:
		return final("see `quorate member list`")
	case errors.Is(err, transport.ErrNeedsTLS), errors.Is(err, transport.ErrBadURL):
		return final("correct --join")
	case status.Code(err) == codes.Unimplemented && strings.Contains(err.Error(), "member: unknown request"):
		return final("that member is too old to be joined by --join: add this one with `etcdctl member add`, and start it " +
			"with --initial-cluster and --initial-cluster-state=existing")
	case status.Code(err) == codes.Unimplemented:
		return final("no member listens there for its peers: --join takes the peer URL of a member, not a client URL")
	case status.Code(err) == codes.FailedPrecondition:
		return final("start this member with the version that the cluster runs")
	}
	return &joinRefusal{fmt.Errorf("%s: %s", url, plainStatus(err)), err}
}

// retried reports whether err says that no member was there, or no leader.
func retried(err error) bool {
	if member.AsksAgain(err) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.ResourceExhausted, codes.Aborted:
		s, is := status.FromError(err)
		return is && s.Code() != codes.OK
	}
	return false
}
