// CoreDNS with the plugins that a cluster without internet access needs. Most of the other sixty need clients of cloud providers.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func init() {
	// The order in which plugins see a query, whatever the Corefile's.
	dnsserver.Directives = []string{"health", "ready", "errors", "cache", "template", "kubernetes"}
}

func main() {
	coremain.Run()
}
