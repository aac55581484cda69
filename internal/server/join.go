package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// joinPatience is how long one member is waited for when a joining member asks who the others are.
const joinPatience = 5 * time.Second

// join asks the members that --initial-cluster names who this member is to be. It was added before, by member add,
// and is found by its peer URLs.
func (b *bootstrap) join(ctx context.Context) (wal.Identity, error) {
	description, err := b.describe(ctx)
	if err != nil {
		return wal.Identity{}, err
	}
	storage, err := b.ownStorage()
	if err != nil {
		return wal.Identity{}, err
	}
	found := b.placeIn(description)
	if found.isLost() {
		// The other members of --initial-cluster do not matter any more: this member joined long ago.
		found, err = b.awaitPlace(ctx, found, storage, b.describe)
	} else if err = b.fits(&description); err == nil {
		err = matchMembers(b.cfg, &found)
	}
	if err != nil {
		return wal.Identity{}, err
	}
	b.logger.Info("joining a cluster", "cluster", found.Cluster.String(), "member", found.owner.ID.String(),
		"members", len(found.Members))
	return wal.Identity{Cluster: found.Cluster, Member: found.owner.ID, Storage: storage, Epoch: found.Epoch}, nil
}

// describe returns what the first member of --initial-cluster says that answers.
func (b *bootstrap) describe(ctx context.Context) (member.Description, error) {
	own := urlTexts(b.cfg.Advertise.PeerURLs)
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

// matchMembers checks --initial-cluster against the real members, as etcd does.
func matchMembers(cfg *config.Config, p *place) error {
	d := &p.Description
	if p.owner.ID == consensus.NoMember {
		own := strings.Join(urlTexts(cfg.Advertise.PeerURLs), ",")
		return fmt.Errorf("cannot join: the cluster has no member with peer URLs %s: add it first with "+
			"`etcdctl member add %s --peer-urls=%s`", own, typed.Word(cfg.Name), typed.Word(own))
	}
	if len(cfg.Bootstrap.InitialCluster) != len(d.Members) {
		return fmt.Errorf("cannot join: member count is unequal: --initial-cluster names %s, the cluster "+
			"has %d: %s", plural.Of(len(cfg.Bootstrap.InitialCluster), "member"), len(d.Members), formatMembers(d.Members))
	}
	for _, m := range d.Members {
		known := slices.ContainsFunc(cfg.Bootstrap.InitialCluster, func(i config.InitialMember) bool {
			return slices.Equal(urlTexts(i.PeerURLs), m.PeerURLs)
		})
		if !known {
			return fmt.Errorf("cannot join: --initial-cluster does not name the member with peer URLs %s",
				strings.Join(m.PeerURLs, ","))
		}
	}
	return nil
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
