package server

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// founding is what the members of a new cluster derive, each alone and all the same, from --initial-cluster.
type founding struct {
	cluster consensus.ClusterID
	self    consensus.MemberID
	config  consensus.Config

	restored bool // the contents are there already
}

// found computes member and cluster ids as etcd does, so that ids seen in scripts and dashboards stay familiar: the
// first eight bytes of SHA-1 over the sorted peer URLs and the token, and over the sorted member ids.
func found(cfg *config.Config) (founding, error) {
	var f founding
	for _, m := range cfg.Bootstrap.InitialCluster {
		member := consensus.Member{Name: m.Name, PeerURLs: urlTexts(m.PeerURLs)}
		member.ID = identity.MemberID(member.PeerURLs, cfg.Bootstrap.ClusterToken)
		if m.Name == cfg.Name {
			f.self = member.ID
		}
		f.config.Members = append(f.config.Members, member)
	}
	if err := sortMembers(f.config.Members); err != nil {
		return f, err
	}
	for _, m := range f.config.Members {
		f.config.Voters = append(f.config.Voters, m.ID)
	}
	f.cluster = identity.ClusterID(f.config.Voters, nil)
	if f.self == consensus.NoMember {
		return f, fmt.Errorf("--initial-cluster does not name this member, %q", cfg.Name)
	}
	return f, nil
}

// sortMembers sorts by id, and refuses an id that two have.
func sortMembers(members []consensus.Member) error {
	slices.SortFunc(members, func(a, b consensus.Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(members); i++ {
		if members[i-1].ID == members[i].ID {
			return fmt.Errorf("--initial-cluster names the same peer URLs twice, as %s and %s", members[i-1].Name,
				members[i].Name)
		}
	}
	return nil
}

func urlTexts(urls []config.URL) []string {
	texts := make([]string, len(urls))
	for i, u := range urls {
		texts[i] = u.String()
	}
	slices.Sort(texts)
	return texts
}
