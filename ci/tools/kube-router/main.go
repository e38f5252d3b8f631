// kube-router's network policies alone: its own main brings a BGP speaker, a service proxy and a cloud with it.
package main

import (
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	klog.InitFlags(nil)
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	must(flag.Set("logtostderr", "true"))
	must(flag.Set("v", config.VLevel))
	must(run(config))
}

func run(config *options.KubeRouterConfig) error {
	access, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}

	health, err := healthcheck.NewHealthController(config)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	beats := make(chan *healthcheck.ControllerHeartbeat, 10)
	var all sync.WaitGroup
	all.Add(1)
	go health.RunServer(stop, &all)

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	health.SetAlive()
	all.Add(1)
	go health.RunCheck(beats, stop, &all)

	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	var mutex sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &mutex, tables, sets)
	if err != nil {
		return err
	}
	if _, err = pods.AddEventHandler(controller.PodEventHandler); err != nil {
		return err
	}
	if _, err = namespaces.AddEventHandler(controller.NamespaceEventHandler); err != nil {
		return err
	}
	if _, err = policies.AddEventHandler(controller.NetworkPolicyEventHandler); err != nil {
		return err
	}
	all.Add(1)
	go controller.Run(beats, stop, &all)

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	close(stop)
	all.Wait()
	return nil
}

func must(err error) {
	if err != nil {
		klog.Exit(err)
	}
}
