package server

import (
	"crypto/fips140"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
)

// founding is what the members of a new cluster derive, each alone and all the same, from --initial-cluster.
type founding struct {
	cluster consensus.ClusterID
	self    consensus.MemberID
	config  consensus.Config
}

// found computes member and cluster ids as etcd does, so that ids seen in scripts and dashboards stay familiar: the
// first eight bytes of SHA-1 over the sorted peer URLs and the token, and over the sorted member ids.
func found(cfg *config.Config) (founding, error) {
	var f founding
	for _, m := range cfg.Bootstrap.InitialCluster {
		member := consensus.Member{Name: m.Name, PeerURLs: urlTexts(m.PeerURLs)}
		member.ID = memberID(member.PeerURLs, cfg.Bootstrap.ClusterToken)
		if m.Name == cfg.Name {
			f.self = member.ID
		}
		f.config.Members = append(f.config.Members, member)
	}
	slices.SortFunc(f.config.Members, func(a, b consensus.Member) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	var ids []byte
	for i, m := range f.config.Members {
		if i > 0 && f.config.Members[i-1].ID == m.ID {
			return f, fmt.Errorf("--initial-cluster names the same peer URLs twice, as %s and %s",
				f.config.Members[i-1].Name, m.Name)
		}
		f.config.Voters = append(f.config.Voters, m.ID)
		ids = binary.BigEndian.AppendUint64(ids, uint64(m.ID))
	}
	f.cluster = consensus.ClusterID(shortSum(ids))
	if f.self == consensus.NoMember {
		return f, fmt.Errorf("--initial-cluster does not name this member, %q", cfg.Name)
	}
	return f, nil
}

func memberID(peerURLs []string, token string) consensus.MemberID {
	return consensus.MemberID(shortSum([]byte(strings.Join(peerURLs, "") + token)))
}

// shortSum is the first eight bytes of a SHA-1. It names members and protects nothing, so it may be computed where
// GODEBUG=fips140=only forbids SHA-1 to whatever protects something.
func shortSum(content []byte) (short uint64) {
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum(content)
		short = binary.BigEndian.Uint64(sum[:])
	})
	return short
}

func urlTexts(urls []config.URL) []string {
	texts := make([]string, len(urls))
	for i, u := range urls {
		texts[i] = u.String()
	}
	slices.Sort(texts)
	return texts
}
