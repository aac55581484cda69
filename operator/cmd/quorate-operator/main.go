// Command quorate-operator runs clusters of Quorate in Kubernetes: see docs/kubernetes.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quorate-operator: "+err.Error())
		os.Exit(1)
	}
}

func run() error {
	namespaces := flag.String("namespaces", "", "namespaces to look at, separated by commas; empty: all")
	elect := flag.Bool("leader-elect", true, "only one of several operators acts: the one that has the lease")
	electIn := flag.String("leader-election-namespace", "", "namespace of the lease; empty: that of the pod")
	metrics := flag.String("metrics-bind-address", ":8080", "where to serve /metrics; 0: nowhere")
	health := flag.String("health-probe-bind-address", ":8081", "where to serve /healthz and /readyz; 0: nowhere")
	// --kubeconfig is a flag of controller-runtime.
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown arguments %q: all settings are flags, see --help", flag.Args())
	}
	ctrl.SetLogger(zap.New())
	klog.SetLogger(ctrl.Log)
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	utilruntime.Must(v1alpha1.AddToScheme(known))
	options := ctrl.Options{Scheme: known, LeaderElection: *elect, LeaderElectionID: "quorate-operator.quorate.io",
		LeaderElectionNamespace: *electIn, LeaderElectionReleaseOnCancel: true, Metrics: server.Options{BindAddress: *metrics},
		HealthProbeBindAddress: *health, GracefulShutdownTimeout: new(10 * time.Second)}
	var only []string
	if *namespaces != "" {
		for _, name := range strings.Split(*namespaces, ",") {
			only = append(only, strings.TrimSpace(name))
		}
	}
	options.Cache = controller.Cache(only...)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("how to reach the API server: %w", err)
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := controller.SetUp(mgr); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
