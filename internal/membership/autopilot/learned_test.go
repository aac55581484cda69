package autopilot_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// placed returns a configuration in which the members 1, 2 and so on are at these URLs.
func placed(urls ...string) *consensus.Config {
	config := &consensus.Config{}
	for i, url := range urls {
		id := consensus.MemberID(i + 1)
		config.Voters = append(config.Voters, id)
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{url}})
	}
	return config
}

func configAt(index consensus.Index, term consensus.Term) consensus.ConfigID {
	return consensus.ConfigID{Index: index, Term: term}
}

// said is what member 2 of the cluster says, by a configuration in which member 1 has moved.
func said(id consensus.ConfigID, urls ...string) *autopilot.Whereabouts {
	w := autopilot.NewWhereabouts(&identity.Claim{Cluster: 7, Epoch: consensus.Epoch{Number: 1}, Member: 2},
		placed(append(urls, "http://b:1", "http://c:1", "http://d:1")...), id)
	return &w
}

var (
	self = identity.Claim{Cluster: 7, Epoch: consensus.Epoch{Number: 1}, Member: 3}
	own  = placed("http://a:1", "http://b:1", "http://c:1")
	ownN = configAt(10, 2)
)

// there is where member 2 answers, and elsewhere is another address at which a process does.
const there, elsewhere = "http://b:1", "http://c:1"

// dials are the URLs at which member 1 is looked for.
func dials(l *autopilot.Learned, id consensus.ConfigID) string {
	return strings.Join(l.Beside(own.Members, id)[0].PeerURLs, " ")
}

// Ensure that a member looks for another one where a member of its configuration says, beside where it did, until its own
// configuration is as new.
func TestLearned(t *testing.T) {
	var l autopilot.Learned
	if got := dials(&l, ownN); got != "http://a:1" {
		t.Fatalf("before: %s", got)
	}
	if !l.Take(&self, own, ownN, there, said(configAt(20, 2), "http://a:2")) {
		t.Fatal("it is no news")
	}
	if got := dials(&l, ownN); got != "http://a:2 http://a:1" {
		t.Errorf("learned: %s", got)
	}
	if all := l.Beside(own.Members, ownN); len(all) != 4 || all[3].ID != 4 || all[3].PeerURLs[0] != "http://d:1" {
		t.Errorf("it looks for %+v, want member 4, which it did not know, too", all)
	}
	if own.Members[0].PeerURLs[0] != "http://a:1" {
		t.Error("the configuration was changed")
	}
	for _, row := range []struct {
		id   consensus.ConfigID
		news bool
		want string
	}{
		{configAt(20, 2), true, "http://a:3 http://a:1"}, {configAt(20, 2), false, "http://a:3 http://a:1"},
		{configAt(10, 2), true, "http://a:1"}, {configAt(15, 3), true, "http://a:3 http://a:1"},
	} {
		if news := l.Take(&self, own, ownN, there, said(row.id, "http://a:3")); news != row.news || dials(&l, ownN) != row.want {
			t.Errorf("told of %v: news %t, %s", row.id, news, dials(&l, ownN))
		}
	}
	for _, id := range []consensus.ConfigID{configAt(15, 3), configAt(16, 3)} { // in force, and not committed
		if got := dials(&l, id); got != "http://a:1" {
			t.Errorf("with configuration %v in force: %s", id, got)
		}
	}
	if l.Outlived(configAt(99, 2)) || dials(&l, ownN) != "http://a:3 http://a:1" {
		t.Error("an older term has outlived it")
	}
	if !l.Outlived(configAt(15, 3)) || dials(&l, ownN) != "http://a:1" || l.Outlived(configAt(16, 3)) {
		t.Error("it stays for ever")
	}
}

// Ensure that a process is not believed that is no member of the own cluster and epoch, and that it changes nothing.
func TestLearned_Take_whoIsBelieved(t *testing.T) {
	for name, change := range map[string]func(*autopilot.Whereabouts){
		"another cluster":   func(w *autopilot.Whereabouts) { w.Cluster = 8 },
		"no cluster":        func(w *autopilot.Whereabouts) { w.Cluster = 0 },
		"another epoch":     func(w *autopilot.Whereabouts) { w.Epoch.Number = 2 },
		"no member":         func(w *autopilot.Whereabouts) { w.Member = consensus.NoMember },
		"a non-member":      func(w *autopilot.Whereabouts) { w.Member = 4 },
		"itself":            func(w *autopilot.Whereabouts) { w.Member = 3 },
		"an older one":      func(w *autopilot.Whereabouts) { w.Config = configAt(9, 2) },
		"the same one":      func(w *autopilot.Whereabouts) { w.Config = ownN },
		"no configuration":  func(w *autopilot.Whereabouts) { w.Config = consensus.ConfigID{} },
		"nothing about any": func(w *autopilot.Whereabouts) { w.Members = nil },
		"only of itself":    func(w *autopilot.Whereabouts) { w.Members = w.Members[2:3] },
		"no URL that can be": func(w *autopilot.Whereabouts) {
			w.Members = []autopilot.Whereabout{{Member: 1, URLs: []string{"", "a:2", "ftp://a:2", "http://" + strings.Repeat("a", 600) + ":1"}}}
		},
	} {
		var l autopilot.Learned
		w := said(configAt(20, 2), "http://a:2")
		change(w)
		if l.Take(&self, own, ownN, there, w) || dials(&l, ownN) != "http://a:1" {
			t.Errorf("%s: it is looked for at %s", name, dials(&l, ownN))
		}
	}
}

// Ensure that whatever is said, only a bounded number of URLs is remembered, and nothing of itself.
func TestLearned_Take_bounded(t *testing.T) {
	var l autopilot.Learned
	w := said(configAt(20, 2), "http://a:2")
	for i := range 1000 {
		w.Members[0].URLs = append(w.Members[0].URLs, fmt.Sprintf("http://a:%d", i+3))
		w.Members = append(w.Members, autopilot.Whereabout{Member: consensus.MemberID(i + 10), URLs: []string{"http://x:1"}})
	}
	w.Members[2].URLs = []string{"http://elsewhere:1"} // member 3 asks
	if !l.Take(&self, own, ownN, there, w) {
		t.Fatal("it is no news")
	}
	all := l.Beside(own.Members, ownN)
	if n := len(all[0].PeerURLs); len(all) != 3+16 || n != membership.MaxURLs+1 {
		t.Errorf("%d members, %d URLs of one", len(all), n)
	}
	if !slices.Equal(all[2].PeerURLs, own.Members[2].PeerURLs) {
		t.Errorf("it believes others that it is itself at %v", all[2].PeerURLs)
	}
}

// Ensure that a process that lies at an address, of a configuration that never comes, takes nothing back that others said or
// will say, whichever comes first, and that its word ends when another one answers at that address.
func TestLearned_Take_oneLies(t *testing.T) {
	lie, truth := said(configAt(1<<60, 1<<60), "http://x:1", "http://x:2"), said(configAt(20, 2), "http://a:2")
	for i := range membership.MaxURLs {
		lie.Members[0].URLs = append(lie.Members[0].URLs, fmt.Sprintf("http://x:%d", i+3))
	}
	for _, lieFirst := range []bool{true, false} {
		var l autopilot.Learned
		for _, lies := range []bool{lieFirst, !lieFirst} {
			at, w := there, truth
			if lies {
				at, w = elsewhere, lie
			}
			if !l.Take(&self, own, ownN, at, w) {
				t.Errorf("the lie came first: %t: no news", lieFirst)
			}
		}
		got := strings.Fields(dials(&l, ownN))
		if !slices.Contains(got, "http://a:2") || len(got) != membership.MaxURLs+1 {
			t.Errorf("the lie came first: %t: it is looked for at %v", lieFirst, got)
		}
		if l.Take(&self, own, ownN, elsewhere, lie) {
			t.Error("the same lie is news")
		}
		if l.Outlived(configAt(20, 2)); len(l.Beside(own.Members, configAt(20, 2))[0].PeerURLs) != membership.MaxURLs+1 {
			t.Error("the lie is outlived")
		}
		if honest := said(configAt(30, 2), "http://a:4"); !l.Take(&self, own, configAt(20, 2), elsewhere, honest) ||
			dials(&l, configAt(20, 2)) != "http://a:4 http://a:1" {
			t.Errorf("another one answers there: it is looked for at %s", dials(&l, configAt(20, 2)))
		}
	}
}

// Ensure that the words of a bounded number of addresses are kept, the last ones.
func TestLearned_Take_manyAddresses(t *testing.T) {
	var l autopilot.Learned
	for i := range 1000 {
		l.Take(&self, own, ownN, fmt.Sprintf("http://b:%d", i), said(configAt(20, 2), fmt.Sprintf("http://a:%d", i+2)))
	}
	if words := l.Words(); words != 32 {
		t.Errorf("the words of %d addresses are kept", words)
	}
	l.Take(&self, own, ownN, "http://a:1", said(configAt(21, 2), "http://a:2000"))
	if got := strings.Fields(dials(&l, ownN)); got[0] != "http://a:2000" || len(got) != membership.MaxURLs+1 {
		t.Errorf("it is looked for at %v", got)
	}
}

// Ensure that a member asks an election timeout after it has heard a leader last, and then more rarely, and that it does not
// ask while it hears one.
func TestLearned_Look(t *testing.T) {
	var l autopilot.Learned
	var asked []int
	for second := range 40 {
		if l.Look(time.Duration(second)*time.Second, 2*time.Second, second == 20) {
			asked = append(asked, second)
		}
	}
	if want := []int{2, 6, 14, 23, 27, 35}; !slices.Equal(asked, want) {
		t.Errorf("it asks at %v, want %v", asked, want)
	}
}

// Ensure that members which are not known are learned of each word in turn, and that one which two words bind to different
// data directories counts as bound to none: the one that lies must not keep it out.
func TestLearned_Beside_unknown(t *testing.T) {
	var l autopilot.Learned
	tell := func(at string, by consensus.MemberID, storage byte, ids ...consensus.MemberID) {
		w := said(configAt(20, 2), "http://a:1")
		w.Member = by
		for _, id := range ids {
			w.Members = append(w.Members, autopilot.Whereabout{Member: id, Storage: consensus.StorageID{storage},
				URLs: []string{fmt.Sprintf("http://%s-%d:1", at, id)}})
		}
		if !l.Take(&self, own, ownN, "http://"+at+":1", w) {
			t.Errorf("what %s says is no news", at)
		}
	}
	var many []consensus.MemberID
	for i := range 100 {
		many = append(many, consensus.MemberID(100+i))
	}
	tell("a", 1, 9, append(many, 50)...)
	tell("b", 2, 1, 50, 51)
	news := map[consensus.MemberID]consensus.Member{}
	all := l.Beside(own.Members, ownN)
	for _, m := range all {
		news[m.ID] = m
	}
	if len(all) != 3+16 || news[51].Storage != (consensus.StorageID{1}) || news[50].PeerURLs[0] != "http://b-50:1" {
		t.Errorf("it knows %+v", all)
	}
	if !slices.IsSortedFunc(all, func(a, b consensus.Member) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Error("members are not sorted by their ids")
	}
	tell("a", 1, 9, 50, 51)
	all = l.Beside(own.Members, ownN)
	for _, m := range all {
		if m.ID >= 50 && !m.Storage.IsZero() {
			t.Errorf("two bind it to different directories: %+v", m)
		}
	}
}

// Ensure that of more members, or URLs, than one round has room for each has its turn: the leader may be any of them.
func TestLearned_turns(t *testing.T) {
	var l autopilot.Learned
	w := said(configAt(20, 2), "http://a:2")
	var urls []string
	for i := range 100 {
		w.Members = append(w.Members, autopilot.Whereabout{Member: consensus.MemberID(100 + i), URLs: []string{"http://x:1"}})
		urls = append(urls, fmt.Sprintf("http://x:%03d", i), fmt.Sprintf("http://y:%03d", i))
	}
	looked, asked := map[consensus.MemberID]bool{}, map[string]bool{}
	for second := range 200 {
		if !l.Look(time.Duration(second)*time.Second, time.Second, false) {
			continue
		}
		of := l.Asks(urls)
		for _, url := range of {
			asked[url] = true
		}
		l.Take(&self, own, ownN, there, w)
		all := l.Beside(own.Members, ownN)
		for _, m := range all {
			looked[m.ID] = true
		}
		if len(of) != 128 || len(all) != 3+16 {
			t.Fatalf("in one round it asks at %d URLs, and looks for %d members", len(of), len(all))
		}
	}
	if len(looked) != 3+101 || len(asked) != 200 {
		t.Errorf("it has looked for %d members, and asked at %d URLs", len(looked), len(asked))
	}
}
