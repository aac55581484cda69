package node

import (
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/test/kubelet/claims"
	"github.com/quorate/quorate/test/kubelet/network"
)

const (
	callTime    = 5 * time.Second // how long one call of the API may take
	idleTime    = time.Hour       // how long a stream of the API server's may be silent
	kubeletPort = 10250           // where the API server reaches the kubelet
)

// Options of a node.
type Options struct {
	Name, Zone string
	Address    string // the machine's
	Directory  string // its disk: volumes, logs
	Root       claims.Root
	Client     kubernetes.Interface
	Network    *network.Network
	Images     Images
	DNS        string // address of the server of names
	APIAddress string // of the API server, for pods
	Say        func(format string, arguments ...any)
}

// Log returns the file with what a container of a pod wrote.
func (o *Options) Log(namespace, pod, container string) string {
	return filepath.Join(o.Directory, "logs", fmt.Sprintf("%s_%s_%s.log", namespace, pod, container))
}
