package datadir

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
)

const addressesFile = "addresses"

// Address is where a member is, as the operator says. It counts until a later configuration gives the member other peer URLs: a
// cluster with a leader has newer addresses in its log.
type Address struct {
	Member consensus.MemberID `json:"member"`
	URLs   []string           `json:"urls"`
	// Config is the last configuration that the directory had, and Instead are the peer URLs that the member had in it.
	Config  consensus.ConfigID `json:"config"`
	Instead []string           `json:"instead"`
	// Unknown says that this configuration had no such member. Then the address counts until a configuration has the member.
	Unknown bool `json:"unknown,omitempty"`
}

// counts reports whether the operator's address still counts: it is newer than the configuration, or the configuration still
// has the peer URLs that it replaces.
func (a *Address) counts(config *consensus.Config, id consensus.ConfigID) bool {
	if a.Unknown {
		return !config.Contains(a.Member)
	}
	known := consensus.Position{Index: a.Config.Index, Term: a.Config.Term}
	if !known.Before(consensus.Position{Index: id.Index, Term: id.Term}) {
		return true
	}
	m, ok := config.Member(a.Member)
	return ok && slices.Equal(m.PeerURLs, a.Instead)
}

// Dialled returns the members of the configuration id, each with all its possible URLs as its peer URLs: first those that the
// operator gave, then those of the configuration, its former ones last. Members that only the operator named are inserted in
// the order of ids.
func Dialled(config *consensus.Config, id consensus.ConfigID, told []Address) []consensus.Member {
	all := slices.Clone(config.Members)
	for i := range all {
		urls := all[i].DialURLs()
		at := slices.IndexFunc(told, func(a Address) bool { return a.Member == all[i].ID })
		if at >= 0 && told[at].counts(config, id) {
			others := slices.DeleteFunc(urls, func(url string) bool { return slices.Contains(told[at].URLs, url) })
			urls = slices.Concat(told[at].URLs, others)
		}
		all[i].PeerURLs = urls
	}
	for i := range told {
		is := func(m consensus.Member) bool { return m.ID == told[i].Member }
		if told[i].Unknown && !slices.ContainsFunc(all, is) {
			at := slices.IndexFunc(all, func(m consensus.Member) bool { return m.ID > told[i].Member })
			if at < 0 {
				at = len(all)
			}
			all = slices.Insert(all, at, consensus.Member{ID: told[i].Member, PeerURLs: told[i].URLs})
		}
	}
	return all
}

// Outlived splits told into the addresses that still count under the committed configuration id, and the members of those that
// do not. removed reports whether a member was removed for ever.
func Outlived(
	config *consensus.Config, id consensus.ConfigID, removed func(consensus.MemberID) bool, told []Address,
) (left []Address, gone []consensus.MemberID) {
	for i := range told {
		if told[i].counts(config, id) && !removed(told[i].Member) {
			left = append(left, told[i])
		} else {
			gone = append(gone, told[i].Member)
		}
	}
	return left, gone
}

// ReadAddresses returns the addresses that the operator gave.
func ReadAddresses(options Options) ([]Address, error) {
	var told []Address
	_, err := readRecord(&options, addressesFile, &told)
	return told, err
}

// WriteAddresses replaces what ReadAddresses returns. It touches nothing else in the directory.
func WriteAddresses(options Options, told []Address) error {
	if len(told) > 0 {
		return writeRecord(&options, addressesFile, told)
	}
	err := options.FS.Remove(options.FS.PathJoin(options.Dir, addressesFile))
	if oserror.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	return nil // a file that comes back after a power loss is found outlived once more
}
