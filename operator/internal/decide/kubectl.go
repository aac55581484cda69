package decide

import (
	"fmt"
	"strings"
)

// Kubectl is a command of kubectl as people paste it, in a namespace: the line is what stands behind kubectl. Its first word is
// the verb or the plugin, before which kubectl takes no flags.
func Kubectl(namespace, line string, args ...any) string {
	verb, rest, _ := strings.Cut(fmt.Sprintf(line, args...), " ")
	return fmt.Sprintf("kubectl %s -n %s %s", verb, namespace, rest)
}

// kubectl is a command for an object of the cluster, in the quotes of the status.
func (o *Observed) kubectl(line string, args ...any) string {
	return "`" + Kubectl(o.Want.Namespace, line, args...) + "`"
}
