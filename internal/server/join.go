package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/memory"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// joinPatience is how long one member is waited for when a joining member asks who the others are.
const joinPatience = 5 * time.Second

// join asks the members that --initial-cluster names who this member is to be. It was added before, by member add,
// and is found by its peer URLs.
func (b *bootstrap) join(ctx context.Context) (wal.Identity, error) {
	description, self, err := b.findOwnPlace(ctx)
	if err == nil && slices.Contains(description.Bound, self) {
		description, self, err = b.awaitOwnPlace(ctx, self)
	}
	if err != nil {
		return wal.Identity{}, err
	}
	storage, err := b.ownStorage()
	if err != nil {
		return wal.Identity{}, err
	}
	b.logger.Info("joining a cluster", "cluster", description.Cluster.String(), "member", self.String(),
		"members", len(description.Members))
	return wal.Identity{Cluster: description.Cluster, Member: self, Storage: storage, Epoch: description.Epoch}, nil
}

// findOwnPlace asks which member is expected at this one's peer URLs.
func (b *bootstrap) findOwnPlace(ctx context.Context) (member.Description, consensus.MemberID, error) {
	own := urlTexts(b.cfg.Advertise.PeerURLs)
	description, err := b.describe(ctx, own)
	if err != nil {
		return description, consensus.NoMember, err
	}
	if b.memory < description.NeedsMemory {
		return description, consensus.NoMember, fmt.Errorf("cannot join: %w",
			&memory.TooLittleError{Has: b.memory, Needs: description.NeedsMemory})
	}
	self, err := matchMembers(b.cfg, own, description)
	return description, self, err
}

// awaitOwnPlace waits until the place of lost, which is bound to a data directory that is not this empty one, was given to a
// new member. Data made in the name of lost would be refused by all others, and be of no use for ever.
func (b *bootstrap) awaitOwnPlace(ctx context.Context, lost consensus.MemberID) (
	member.Description, consensus.MemberID, error,
) {
	startup := b.startup()
	defer startup.close()
	text := fmt.Sprintf("has lost its disk: member %v at these peer URLs is bound to another data directory, and this one is "+
		"empty. It does not vote. Give it its directory back and start it again; if that is lost for ever, `quorate member "+
		"reset %s` from any member that serves, and this process goes on by itself", lost, b.cfg.Name)
	startup.say(text)
	var said time.Time
	for {
		if time.Since(said) > waitingLog {
			b.logger.Warn("not a member yet: it " + text)
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return member.Description{}, consensus.NoMember, errors.New("stopped: this member " + text)
		case <-time.After(greetPause):
		}
		// Between the end of the lost member and the beginning of the new one nobody is expected here.
		description, self, err := b.findOwnPlace(ctx)
		if err == nil && !slices.Contains(description.Bound, self) {
			return description, self, nil
		}
	}
}

// describe returns what the first member that answers says.
func (b *bootstrap) describe(ctx context.Context, own []string) (member.Description, error) {
	var failures []string
	for _, m := range b.cfg.Bootstrap.InitialCluster {
		for _, url := range urlTexts(m.PeerURLs) {
			if slices.Contains(own, url) {
				continue
			}
			asked, cancel := context.WithTimeout(ctx, joinPatience)
			description, err := member.Describe(asked, b.asking, url)
			cancel()
			if err == nil {
				return description, nil
			}
			failures = append(failures, url+": "+plainStatus(transport.Explain(ctx, b.asking, url, err)))
		}
	}
	if len(failures) == 0 {
		return member.Description{}, errors.New("--initial-cluster-state=existing, but --initial-cluster names no other " +
			"member: list the running members")
	}
	return member.Description{}, fmt.Errorf("cannot join: no member of --initial-cluster answers: %s",
		strings.Join(failures, "; "))
}

// matchMembers checks --initial-cluster against the real members, as etcd does, and returns this member's id.
func matchMembers(cfg *config.Config, own []string, d member.Description) (consensus.MemberID, error) {
	self := consensus.NoMember
	if d.Level > level.Own {
		return self, fmt.Errorf("cannot join: %w", &level.TooLowError{Own: level.Own, Active: d.Level})
	}
	for _, m := range d.Members {
		if slices.Equal(m.PeerURLs, own) {
			self = m.ID
		}
	}
	if self == consensus.NoMember {
		return self, fmt.Errorf("cannot join: the cluster has no member with peer URLs %s: add it first with "+
			"`etcdctl member add %s --peer-urls=%s`", strings.Join(own, ","), cfg.Name, strings.Join(own, ","))
	}
	if len(cfg.Bootstrap.InitialCluster) != len(d.Members) {
		return self, fmt.Errorf("cannot join: member count is unequal: --initial-cluster names %d members, the cluster "+
			"has %d: %s", len(cfg.Bootstrap.InitialCluster), len(d.Members), formatMembers(d.Members))
	}
	for _, m := range d.Members {
		known := slices.ContainsFunc(cfg.Bootstrap.InitialCluster, func(i config.InitialMember) bool {
			return slices.Equal(urlTexts(i.PeerURLs), m.PeerURLs)
		})
		if !known {
			return self, fmt.Errorf("cannot join: --initial-cluster does not name the member with peer URLs %s",
				strings.Join(m.PeerURLs, ","))
		}
	}
	return self, nil
}

func formatMembers(members []consensus.Member) string {
	var parts []string
	for _, m := range members {
		name := m.Name
		if name == "" {
			name = m.ID.String()
		}
		parts = append(parts, name+"="+strings.Join(m.PeerURLs, ","))
	}
	return strings.Join(parts, " ")
}
