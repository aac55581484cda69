package survey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/base/typed"
)

// troubles are what a member reports of itself, without that it knows no leader: its role says so.
func troubles(m Member) []string {
	return slices.DeleteFunc(slices.Clone(m.Alarms), func(text string) bool {
		return text == rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader)
	})
}

// CutOff returns the members that answer and know no leader, although there is one.
func CutOff(members []Member) []Member {
	if _, led := LeaderOf(members); !led {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool {
		return m.Role != Seeking && !slices.Contains(m.Alarms, rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader))
	})
}

// Alarmed tells whether any member reports something that an operator should look at.
func Alarmed(members []Member) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return len(troubles(m)) > 0 })
}

// Notes says what the members report, with a remedy, each once although all members know the alarms of the cluster.
func Notes(members []Member) []string {
	var texts []string
	reporters := map[string][]string{}
	for _, m := range members {
		for _, text := range troubles(m) {
			if kind, id, ok := storedAlarm(text); ok {
				text = ExplainAlarm(kind, id, nameOf(id, members))
			}
			if len(reporters[text]) == 0 {
				texts = append(texts, text)
			}
			if !slices.Contains(reporters[text], m.Name) {
				reporters[text] = append(reporters[text], m.Name)
			}
		}
	}
	for i, text := range texts {
		verb := " reports: "
		if len(reporters[text]) > 1 {
			verb = " report: "
		}
		texts[i] = strings.Join(reporters[text], ", ") + verb + text
	}
	return texts
}

// storedAlarm reads an alarm of the cluster as etcd's servers write it into their status: memberID:161 alarm:NOSPACE.
func storedAlarm(text string) (kind string, id uint64, ok bool) {
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, ":")
		switch name {
		case "memberID":
			id, _ = strconv.ParseUint(value, 10, 64)
		case "alarm":
			kind = value
		default:
			return "", 0, false
		}
	}
	return kind, id, kind != ""
}

// nameOf is how a member that answers is called; empty: none of this id does.
func nameOf(id uint64, members []Member) (name string) {
	for _, m := range members {
		if m.ID == id && m.Role != Down {
			name = m.Name
		}
	}
	return name
}

// ExplainAlarm names an alarm that the cluster stores, says which member it is about, and what to do. The name of the member
// may be empty.
func ExplainAlarm(kind string, id uint64, name string) string {
	about := strconv.FormatUint(id, 16)
	if name != "" {
		about = name + " (" + about + ")"
	}
	switch {
	case kind == pb.AlarmType_NOSPACE.String():
		return fmt.Sprintf("alarm NOSPACE of %s: its store has reached --quota-backend-bytes, and no member takes writes "+
			"that grow. Delete keys and compact, which ends the alarm by itself in about a minute (`quorate doctor` names "+
			"the command with a revision that leaves some history: watches that lag behind it end); or start "+
			"the members again with a larger --quota-backend-bytes, then `quorate alarm disarm`", about)
	case kind == pb.AlarmType_CORRUPT.String() && id == 0:
		return "alarm CORRUPT of no member in particular: the members' data differ and no majority agrees, so that none " +
			"serves. Any of them may have the only copy of acknowledged writes: empty no data directory. Stop the clients, " +
			"compare the members with `quorate endpoint hashkv --cluster`, and copy every data directory of a stopped " +
			"member elsewhere. Only once it is decided whose data is right: stop each of the others, move its directory " +
			"aside and keep that, start the member with " + typed.Emptied + ", run `quorate member reset NAME`, and at the " +
			"end `quorate alarm disarm`"
	case kind == pb.AlarmType_CORRUPT.String():
		if name == "" {
			name = "NAME"
		}
		return fmt.Sprintf("alarm CORRUPT of %s: its data differ from those of the majority, and it serves nobody. First see "+
			"that the others serve and are well; this one may be needed else. Then stop it, %s, and keep what was moved",
			about, typed.StartOver("its data directory", "it", "", name))
	}
	return fmt.Sprintf("alarm %s of %s", kind, about)
}
