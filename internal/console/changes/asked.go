package changes

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// takes says what a verb is told, beside a name.
type takes struct {
	Members  int  // that it names: 0, 1 or several
	Newcomer bool // a name and peer URLs
	URLs     bool // peer URLs of the member
	Protocol bool
	Join     bool // how long newcomers may take to start
	Force    bool // a reason
}

const several = 2

// told is what each verb is told.
var told = map[string]takes{
	"replace":  {Members: 1, Newcomer: true, Protocol: true, Join: true},
	"add":      {Newcomer: true, Protocol: true, Join: true},
	"remove":   {Members: several, Protocol: true},
	"reset":    {Members: 1, Protocol: true, Force: true},
	"promote":  {Members: several, Protocol: true},
	"demote":   {Members: several, Protocol: true},
	"update":   {Members: 1, URLs: true, Force: true},
	"drain":    {Members: several},
	"cordon":   {Members: several},
	"uncordon": {Members: several},
	"change":   {Protocol: true, Join: true, Force: true},
}

// asked is a change as the query of a page says it, with the words of the command line.
type asked struct {
	verb     string
	members  []string
	name     string
	urls     string // with commas
	with     string
	learner  bool
	protocol string
	join     string
	force    string
	// of the verb change, by the names of its flags
	more map[string][]string
}

// Names of the values of a query: the flags of `quorate member`.
const (
	verbKey     = "verb"
	memberKey   = "member"
	nameKey     = "name"
	urlsKey     = "peer-urls"
	withKey     = "with"
	learnerKey  = "learner"
	protocolKey = "protocol"
	joinKey     = "join-timeout"
	forceKey    = "force"
)

// moreKeys are the flags of the verb change.
var moreKeys = []string{"add", "add-learner", "remove", "promote", "demote", "cordon", "uncordon", "update"}

// askedOf reads a query.
func askedOf(query url.Values) *asked {
	one := func(key string) string {
		if values := words(query[key]); len(values) > 0 {
			return strings.TrimSpace(values[0])
		}
		return ""
	}
	a := &asked{verb: one(verbKey), members: words(query[memberKey]), name: one(nameKey), with: one(withKey),
		learner: one(learnerKey) != "", protocol: one(protocolKey), join: one(joinKey), force: one(forceKey),
		more: map[string][]string{}}
	a.urls = strings.Join(strings.FieldsFunc(one(urlsKey), func(r rune) bool { return r == ',' || r == ' ' }), ",")
	if a.protocol == "" {
		a.protocol = "auto"
	}
	for _, key := range moreKeys {
		var values []string
		for _, value := range query[key] {
			values = append(values, strings.Split(value, "\n")...)
		}
		for _, value := range words(values) {
			if value = strings.TrimSpace(value); value != "" {
				a.more[key] = append(a.more[key], value)
			}
		}
	}
	return a
}

// known reports whether there is such a verb.
func (a *asked) known() bool {
	_, known := told[a.verb]
	return known
}

// begun reports whether a change is asked for, complete or not: the plan is shown then, or what is missing.
func (a *asked) begun() bool {
	takes := told[a.verb]
	switch {
	case a.verb == "change":
		return slices.ContainsFunc(moreKeys, func(key string) bool { return len(a.more[key]) > 0 })
	case takes.Newcomer:
		return a.name != "" || a.urls != "" || a.with != ""
	case takes.URLs:
		return a.urls != ""
	}
	return len(a.members) > 0
}

// joinTimeouts bound --join-timeout.
const leastJoin, mostJoin = time.Second, 30 * 24 * time.Hour

// check refuses what can be refused without asking the cluster. The error is a sentence.
func (a *asked) check() error {
	takes := told[a.verb]
	if err := consensus.RefuseExperiment(a.protocol); err != nil {
		return page.FormError("Protocol: " + err.Error() + ".")
	}
	if _, known := consensus.ParseProtocol(a.protocol); !known {
		return page.FormError("There is no protocol " + a.protocol + ": choose one of " +
			strings.Join(consensus.ProtocolNames(), ", ") + ".")
	}
	if within, err := time.ParseDuration(a.join); a.join != "" && (err != nil || within < leastJoin || within > mostJoin) {
		return page.FormError("How long newcomers may take is a duration such as 30m or 2h, from 1s to 720h, and not " +
			a.join + ".")
	}
	switch {
	case takes.Members > 0 && len(a.members) == 0:
		return page.FormError("Choose a member.")
	case takes.Members == 1 && len(a.members) > 1:
		return page.FormError("Choose one member: " + a.verb + " takes one at a time.")
	case a.with != "" && (a.name != "" || a.urls != ""):
		return page.FormError("Choose a learner that is there already, or give name and peer URLs of a newcomer: not both.")
	case a.with != "":
		return nil
	case takes.Newcomer && a.name == "" && a.verb == "replace":
		return page.FormError("The newcomer needs a name, such as m4.")
	case takes.Newcomer || takes.URLs:
		_, err := wording.PeerURLs("Peer URLs", []string{a.urls})
		return sentence(err)
	}
	return nil
}

// sentence is an error, or what a server says, in the words of the reader; nil if err is.
func sentence(err error) error {
	if err == nil {
		return nil
	}
	text := prose.Capital(page.Text(lines(status.Convert(err).Message())))
	return page.FormError(strings.TrimSuffix(text, ".") + ".")
}

// spec says the change for a cluster as it is: names become ids. It was checked.
func (a *asked) spec(cluster *quoratepb.Cluster) (spec *quoratepb.ChangeSpec, err error) {
	spec = &quoratepb.ChangeSpec{Kind: "change"}
	var urls []string
	if told[a.verb].Newcomer && a.with == "" || told[a.verb].URLs {
		if urls, err = wording.PeerURLs("Peer URLs", []string{a.urls}); err != nil {
			return nil, err
		}
	}
	var ids []uint64
	if told[a.verb].Members > 0 {
		if ids, err = wording.FindMembers(cluster, a.members); err != nil {
			return nil, err
		}
	}
	switch a.verb {
	case "replace":
		r := wording.Replacement{Old: a.members[0], Name: a.name, With: a.with, PeerURLs: urls}
		spec, err = r.Spec(cluster)
	case "reset":
		spec, err = wording.Reset(cluster, a.members[0])
	case "change":
		spec, err = a.atOnce(cluster)
	case "add":
		spec.Add = []*quoratepb.Newcomer{{Name: a.name, PeerUrls: urls, Learner: a.learner}}
	case "update":
		spec.Update = []*quoratepb.NewURLs{{Id: ids[0], PeerUrls: urls}}
	case "remove":
		spec.Remove = ids
	case "promote":
		spec.Promote = ids
	case "demote":
		spec.Demote = ids
	case "cordon":
		spec.Cordon = ids
	case "uncordon":
		spec.Uncordon = ids
	case "drain":
		spec.Kind, spec.Drain = "drain", ids
	}
	if err != nil {
		return nil, err
	}
	spec.Expected = cluster.GetConfig()
	if told[a.verb].Protocol {
		spec.Protocol = a.protocol
	}
	if told[a.verb].Force {
		spec.Force = a.force
	}
	if within, err := time.ParseDuration(a.join); err == nil && told[a.verb].Join && len(spec.Add) > 0 {
		spec.JoinWithinMs = within.Milliseconds()
	}
	return spec, nil
}

// atOnce is the specification of the verb change.
func (a *asked) atOnce(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
	all := wording.Changes{Remove: a.more["remove"], Promote: a.more["promote"], Demote: a.more["demote"],
		Cordon: a.more["cordon"], Uncordon: a.more["uncordon"]}
	for _, set := range []struct {
		key  string
		read *[]wording.MemberURLs
	}{{"add", &all.Add}, {"add-learner", &all.AddLearner}, {"update", &all.Update}} {
		var err error
		if *set.read, err = wording.ParseMemberURLs(set.key, a.more[set.key]); err != nil {
			return nil, err
		}
	}
	return all.Spec(cluster)
}

// command is the change as a command line of `quorate`, without the flags of the connection.
func (a *asked) command(more ...string) []string {
	line := append([]string{"member", a.verb}, a.members...)
	takes := told[a.verb]
	flag := func(key, value string) {
		if value != "" {
			line = append(line, "--"+key, value)
		}
	}
	if a.verb == "add" && a.name != "" {
		line = append(line, a.name)
	}
	if a.verb == "replace" {
		flag(nameKey, a.name)
		flag(withKey, a.with)
	}
	switch {
	case a.verb == "add" && a.name == "":
		line = append(line, strings.Split(a.urls, ",")...)
	case takes.Newcomer || takes.URLs:
		flag(urlsKey, a.urls)
	}
	if a.verb == "add" && a.learner {
		line = append(line, "--"+learnerKey)
	}
	for _, key := range moreKeys {
		for _, value := range a.more[key] {
			if a.verb == "change" {
				flag(key, value)
			}
		}
	}
	if takes.Protocol && a.protocol != "auto" {
		flag(protocolKey, a.protocol)
	}
	if takes.Join {
		flag(joinKey, a.join)
	}
	if takes.Force {
		flag(forceKey, a.force)
	}
	return append(line, more...)
}

// address is the query that says the change again.
func (a *asked) address(path string) string {
	query := url.Values{}
	set := func(key, value string) {
		if value != "" {
			query.Set(key, value)
		}
	}
	if path == planPath {
		set(verbKey, a.verb)
	}
	for _, m := range a.members {
		query.Add(memberKey, m)
	}
	set(nameKey, a.name)
	set(urlsKey, a.urls)
	set(withKey, a.with)
	if a.learner {
		set(learnerKey, "yes")
	}
	if a.protocol != "auto" {
		set(protocolKey, a.protocol)
	}
	set(joinKey, a.join)
	set(forceKey, a.force)
	for _, key := range moreKeys {
		for _, value := range a.more[key] {
			query.Add(key, value)
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
