package autopilot

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// A member that was down while another one moved does not find that one, and no process answers for it where the own
// configuration has it. If it leads, it is not heard, so the log that says where it is never comes. Those that are found at
// addresses of the own configuration know that already, and are asked: rule 4 of the rule of evidence in package identity.

// Whereabouts are where the members are by the committed configuration of the member that says so.
type Whereabouts struct {
	Cluster consensus.ClusterID `json:"cluster"`
	Epoch   consensus.Epoch     `json:"epoch"`
	Member  consensus.MemberID  `json:"member"` // that says so
	Config  consensus.ConfigID  `json:"config"`
	Members []Whereabout        `json:"members"`
}

// Whereabout is where one member is: its present URLs come first. Storage is the data directory that it is bound to.
type Whereabout struct {
	Member  consensus.MemberID  `json:"member"`
	Storage consensus.StorageID `json:"storage"`
	URLs    []string            `json:"urls"`
}

// NewWhereabouts returns what a member, own, says by its committed configuration.
func NewWhereabouts(own *identity.Claim, committed *consensus.Config, id consensus.ConfigID) Whereabouts {
	w := Whereabouts{Cluster: own.Cluster, Epoch: own.Epoch, Member: own.Member, Config: id}
	for i := range committed.Members {
		m := &committed.Members[i]
		w.Members = append(w.Members, Whereabout{Member: m.ID, Storage: m.Storage, URLs: m.DialURLs()})
	}
	return w
}

// Learned is what a member that hears no leader has learned so of where the others are: newer committed configurations than its
// own. The words of each address are kept apart, as a process that answers there may lie, or err: none takes back the words of
// another. It has no clock and asks no process itself, it is in memory only, and each word ends as soon as the own
// configuration is as new, or the same address says something else. A word does not end by time: the process that said it may
// be down, and it may be all that leads to a member. The zero value has learned nothing. It belongs to one goroutine at a
// time.
type Learned struct {
	words []word // in the order in which they were said last
	round int    // of questions; where there are too many members that are not known, or URLs, they take turns by it

	alone bool          // no leader is heard
	due   time.Duration // when the next round of questions is, while alone
	pause time.Duration // before the one after that
}

// word is what was said at an address of the own configuration or of the operator's word.
type word struct {
	at     string // the URL
	config consensus.ConfigID
	places []Whereabout // of its members
}

const (
	// maxWords bounds the addresses whose word is kept.
	maxWords = 32
	// mostNews bounds the members that are learned of and that are not known otherwise, by one word and in all, and turn is how
	// many of them give way to others in the next round of questions, if there are more.
	mostNews = 16
	turn     = 5
	// mostAsked bounds the URLs at which is asked in one round.
	mostAsked = 128
)

// mostLearnPauses bounds the pause between two rounds of questions, in election timeouts.
const mostLearnPauses = 4

// Look takes whether a leader is heard, and tells whether to ask now: for the first time an election timeout after none was
// heard, and more rarely from then on.
func (l *Learned) Look(now, electionTimeout time.Duration, led bool) (ask bool) {
	switch {
	case led:
		l.alone = false
	case !l.alone:
		l.alone, l.due, l.pause = true, now+electionTimeout, 2*electionTimeout
	case now >= l.due:
		l.round++
		l.due, l.pause = now+l.pause, min(2*l.pause, mostLearnPauses*electionTimeout)
		return true
	}
	return false
}

// Asks returns the URLs at which to ask in this round, of all that may be asked, each once.
func (l *Learned) Asks(all []string) []string {
	all = slices.Sorted(slices.Values(all))
	return inTurn(slices.Compact(all), mostAsked*l.round, mostAsked)
}

// Take takes the answer of a process that was found at a URL of the own configuration or of the operator's word, and reports
// whether it is news: another URL is dialled, or one less. A process of another cluster or epoch, or one that is not among the
// known members, is not believed, and changes nothing. The configuration in force is id.
func (l *Learned) Take(
	own *identity.Claim, known *consensus.Config, id consensus.ConfigID, at string, said *Whereabouts,
) (news bool) {
	if said.Cluster != own.Cluster || said.Epoch != own.Epoch || said.Member == own.Member || !known.Contains(said.Member) {
		return false
	}
	before := l.Beside(known.Members, id)
	l.words = slices.DeleteFunc(l.words, func(w word) bool { return w.at == at })
	if places := l.placesOf(own, known, said); len(places) > 0 && older(id, said.Config) {
		l.words = append(l.words[max(0, len(l.words)+1-maxWords):], word{at, said.Config, places})
	}
	return !slices.EqualFunc(before, l.Beside(known.Members, id), func(one, other consensus.Member) bool {
		return one.ID == other.ID && one.Storage == other.Storage && slices.Equal(one.PeerURLs, other.PeerURLs)
	})
}

// placesOf returns where members are, as a process says, which tells a member nothing about itself: first those that are
// known, and then others, by turns.
func (l *Learned) placesOf(own *identity.Claim, known *consensus.Config, said *Whereabouts) []Whereabout {
	var places, news []Whereabout
	told := map[consensus.MemberID]bool{own.Member: true, consensus.NoMember: true}
	for i := range said.Members {
		m := &said.Members[i]
		if told[m.Member] {
			continue
		}
		told[m.Member] = true
		switch urls := usable(m.URLs); {
		case len(urls) == 0:
		case known.Contains(m.Member):
			places = append(places, Whereabout{Member: m.Member, Storage: m.Storage, URLs: urls})
		default:
			news = append(news, Whereabout{Member: m.Member, Storage: m.Storage, URLs: urls})
		}
	}
	return slices.Concat(places, inTurn(news, turn*l.round, mostNews))
}

// inTurn returns as many as most of all, from the first one on, and those at the begin after the last one.
func inTurn[T any](all []T, first, most int) []T {
	if len(all) <= most {
		return all
	}
	first %= len(all)
	return slices.Concat(all[first:], all[:first])[:most]
}

// usable returns those of some URLs that may be dialled, as many as a member may have.
func usable(urls []string) (good []string) {
	for _, url := range urls[:min(len(urls), membership.MaxURLs+membership.MaxFormer)] {
		if _, err := config.ParseURL(url); err == nil && membership.FitsURL(url) && !slices.Contains(good, url) {
			good = append(good, url)
		}
	}
	return good[:min(len(good), membership.MaxURLs)]
}

// Beside adds what was learned to the members of the configuration id, sorted by their ids, as they are dialled without it:
// members that are not among them, and further peer URLs. Those are dialled first, because they are of a newer configuration:
// as many URLs as a member may have, of each word in turn.
func (l *Learned) Beside(members []consensus.Member, id consensus.ConfigID) []consensus.Member {
	newer := slices.DeleteFunc(slices.Clone(l.words), func(w word) bool { return !older(id, w.config) })
	if len(newer) == 0 {
		return members
	}
	slices.SortFunc(newer, func(one, other word) int {
		switch {
		case older(other.config, one.config):
			return -1
		case older(one.config, other.config):
			return 1
		}
		return strings.Compare(one.at, other.at)
	})
	config := consensus.Config{Members: slices.Clone(members)}
	all := config.Including(newMembers(newer, &config)).Members
	for i := range all {
		if news := learnedOf(newer, &all[i]); len(news) > 0 {
			all[i].PeerURLs = slices.Concat(news, all[i].PeerURLs)
		}
	}
	return all
}

// newMembers returns the members that words tell of and that are not known, without URLs: of each word in turn. One that is
// bound to another data directory by each of two words counts as bound to none: one of them lies, or errs.
func newMembers(words []word, known *consensus.Config) (news []consensus.Member) {
	for nth := range mostNews {
		for i := range words {
			places := slices.Clone(words[i].places)
			places = slices.DeleteFunc(places, func(p Whereabout) bool { return known.Contains(p.Member) })
			if nth >= len(places) {
				continue
			}
			p := &places[nth]
			at := slices.IndexFunc(news, func(m consensus.Member) bool { return m.ID == p.Member })
			switch {
			case at < 0 && len(news) < mostNews:
				news = append(news, consensus.Member{ID: p.Member, Storage: p.Storage})
			case at >= 0 && news[at].Storage != p.Storage:
				news[at].Storage = consensus.NoStorage
			}
		}
	}
	return news
}

// learnedOf returns the URLs of a member that words tell and that are not known, the first one of each word first.
func learnedOf(words []word, m *consensus.Member) (news []string) {
	for nth := range membership.MaxURLs {
		for _, w := range words {
			at := slices.IndexFunc(w.places, func(p Whereabout) bool { return p.Member == m.ID })
			if at < 0 || nth >= len(w.places[at].URLs) {
				continue
			}
			url := w.places[at].URLs[nth]
			if len(news) < membership.MaxURLs && !slices.Contains(m.PeerURLs, url) && !slices.Contains(news, url) {
				news = append(news, url)
			}
		}
	}
	return news
}

// Outlived forgets what was learned of configurations that are not newer than the own committed one, and reports whether it
// did.
func (l *Learned) Outlived(committed consensus.ConfigID) bool {
	before := len(l.words)
	l.words = slices.DeleteFunc(l.words, func(w word) bool { return !older(committed, w.config) })
	return len(l.words) < before
}

// older reports whether one configuration comes before another one in the log. A log that has the entry of a later term has all
// that was committed in terms before.
func older(one, other consensus.ConfigID) bool {
	return consensus.Position{Index: one.Index, Term: one.Term}.Before(
		consensus.Position{Index: other.Index, Term: other.Term})
}
