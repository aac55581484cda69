package plugin

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Options are what flags before the cluster's name set.
type Options struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	tlsSecret  string
	member     string // of a pod; empty: all
	userSecret string
}

// Kubernetes is how the plugin reaches an API server.
type Kubernetes struct {
	Config    *rest.Config
	Namespace string
	Client    kubernetes.Interface
	Resources dynamic.Interface
}

// FromKubeconfig reaches the API server that kubectl would reach with the same flags.
func FromKubeconfig(o *Options) (*Kubernetes, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, command.Usagef("%w; name the cluster of Kubernetes with --kubeconfig, --context or KUBECONFIG, as "+
			"for kubectl", err)
	}
	k := &Kubernetes{Config: config}
	if k.Namespace, _, err = loader.Namespace(); err != nil {
		return nil, command.Usagef("%w", err)
	}
	if k.Client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, command.Usagef("%w", err)
	}
	k.Resources, err = dynamic.NewForConfig(config)
	return k, err
}

// Connect returns the API server that options name.
type Connect func(*Options) (*Kubernetes, error)

// denied is the error of a right that lacks.
func denied(what string, err error) error {
	return command.Refused(fmt.Errorf("%s: %w", what, err))
}

// unreachable is the error of an API server that does not answer as one.
func unreachable(err error) error {
	if apierrors.IsUnauthorized(err) {
		return command.Refused(fmt.Errorf("the API server does not know you: %w; log in as for kubectl", err))
	}
	return command.Unreachable(fmt.Errorf("ask the API server: %w", err))
}
