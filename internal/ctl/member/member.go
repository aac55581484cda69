package member

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

const memberLong = `List and change the members of the cluster, while it works.

A MEMBER is given by its name or its id (hexadecimal, as in ` + "`member list`" + `).

Every change is planned first: the plan tells each step, how many members must agree in it and how many may fail. A change
is a job that the cluster holds. The command only shows how far the job is: ending it, with Ctrl-C or otherwise, changes
nothing, and the same command again finds the same job. Without a terminal to ask on, changes need --yes.

Output (-o): table; json or yaml print the plan, the job or the cluster as one object with the field names of
membership.proto, and everything else goes to the error stream.

Exit status:
    0  done, or nothing to do
    1  refused: the plan is blocked, the cluster changed since, the job failed or was cancelled, the answer was no
    2  the command line makes no sense
    3  the cluster cannot be reached or does not answer in time; a job goes on without us
  130  interrupted; a job goes on without us`

const memberExample = `  quorate member list
  quorate member replace m2 --name m4 --peer-urls http://10.0.4.9:2380
  quorate member plan --add m4=http://10.0.4.9:2380 --remove m2
  quorate member apply cluster.yaml --dry-run
  quorate member jobs watch 3f2a`

// New returns the command member with its verbs.
func New(s command.Streams) *cobra.Command {
	c := command.Group("member", "List and change the members of the cluster",
		newList(s), newWatch(s), newPlan(s), newChange(s), newReplace(s), newReset(s),
		newApply(s),
		newAdd(s), newRemove(s), newPromote(s), newDemote(s), newUpdate(s),
		newScale(s), newDrain(s), newCordon(s), newUncordon(s), newJobs(s))
	c.Long, c.Example = memberLong, memberExample
	return c
}
