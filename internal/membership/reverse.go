package membership

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
)

// reverse is the command that takes the change back once it is made; empty if there is nothing to take back. A removed member
// comes back as a new member only, under the name and at the URLs of the old one; a reset has made that one already.
func (g *goal) reverse() string {
	if g.resets() {
		return ""
	}
	var r reversal
	for i := range g.arrivals {
		a := &g.arrivals[i]
		switch {
		case !a.present:
			r.remove = append(r.remove, g.names.newWord(g.spec, a))
		case !a.Learner && g.config.IsLearner(a.ID) && !slices.Contains(g.spec.Promote, a.ID):
			r.demote = append(r.demote, g.names.word(a.ID))
		}
	}
	for _, id := range g.remove {
		m, _ := g.config.Member(id)
		r.bring(g.config.IsLearner(id), g.view.publishedName(&m), m.PeerURLs)
	}
	for _, id := range g.promote {
		if slices.Contains(g.spec.Promote, id) {
			r.demote = append(r.demote, g.names.word(id))
		}
	}
	for _, id := range g.demote {
		r.promote = append(r.promote, g.names.word(id))
	}
	for i := range g.update {
		m, _ := g.config.Member(g.update[i].ID)
		r.update = append(r.update, g.names.word(m.ID)+"="+strings.Join(m.PeerURLs, ","))
	}
	for _, id := range pick(g.spec.Cordon, func(id consensus.MemberID) bool { return g.marks(id, true) }) {
		r.uncordon = append(r.uncordon, g.names.word(id))
	}
	for _, id := range g.uncordon {
		r.cordon = append(r.cordon, g.names.word(id))
	}
	return r.command()
}

// reversal is what a change is taken back with.
type reversal struct {
	remove, promote, demote []string
	cordon, uncordon        []string
	add, addLearner, update []string // NAME=URLS
}

func (r *reversal) bring(learner bool, name string, urls []string) {
	if name == "" {
		name = "NAME"
	}
	text := name + "=" + strings.Join(urls, ",")
	if learner {
		r.addLearner = append(r.addLearner, text)
	} else {
		r.add = append(r.add, text)
	}
}

// command is the shortest that says it. It can be typed as it is.
func (r *reversal) command() string {
	kinds := 0
	for _, list := range [][]string{r.remove, r.promote, r.demote, r.cordon, r.uncordon, r.add, r.addLearner, r.update} {
		for i := range list {
			list[i] = quoted(list[i])
		}
	}
	for _, list := range [][]string{r.remove, r.promote, r.demote, r.cordon, r.uncordon, r.add, r.addLearner, r.update} {
		if len(list) > 0 {
			kinds++
		}
	}
	const verb = "quorate member "
	command := ""
	switch one := kinds == 1; {
	case kinds == 0:
		return ""
	case one && len(r.remove) > 0:
		command = verb + "remove " + strings.Join(r.remove, " ")
	case one && len(r.promote) > 0:
		command = verb + "promote " + strings.Join(r.promote, " ")
	case one && len(r.demote) > 0:
		command = verb + "demote " + strings.Join(r.demote, " ")
	case one && len(r.cordon) > 0:
		command = verb + "cordon " + strings.Join(r.cordon, " ")
	case one && len(r.uncordon) > 0:
		command = verb + "uncordon " + strings.Join(r.uncordon, " ")
	case one && len(r.add) == 1:
		command = verb + "add " + withFlag(r.add[0], " --peer-urls ")
	case one && len(r.addLearner) == 1:
		command = verb + "add " + withFlag(r.addLearner[0], " --peer-urls ") + " --learner"
	case one && len(r.update) == 1:
		command = verb + "update " + withFlag(r.update[0], " --peer-urls ")
	case kinds == 2 && len(r.remove) == 1 && len(r.add)+len(r.addLearner) == 1:
		back := slices.Concat(r.add, r.addLearner)[0]
		command = verb + "replace " + r.remove[0] + " --name " + withFlag(back, " --peer-urls ")
	default:
		command = verb + "change" + flags(" --add ", r.add) + flags(" --add-learner ", r.addLearner) +
			flags(" --remove ", r.remove) + flags(" --promote ", r.promote) + flags(" --demote ", r.demote) +
			flags(" --cordon ", r.cordon) + flags(" --uncordon ", r.uncordon) + flags(" --update ", r.update)
	}
	return command
}

// quoted is NAME or NAME=URLS for a shell, each part by itself.
func quoted(text string) string {
	parts := strings.SplitN(text, "=", 2)
	for i, part := range parts {
		parts[i] = typed.Word(part)
	}
	return strings.Join(parts, "=")
}

func withFlag(assignment, flag string) string { return strings.Replace(assignment, "=", flag, 1) }

func flags(flag string, values []string) string {
	text := ""
	for _, value := range values {
		text += flag + value
	}
	return text
}
