package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// stillFactory hands out informers that watch nothing: objects are put into them by hand, and every
// handler has seen an object when put returns. So a world is loaded without waiting for anything,
// and the same world is always loaded in the same order.
//
// The embedded interface is nil on purpose: a group that the scheduler asks for and that is not
// listed here ends the run with a panic instead of being silently empty.
type stillFactory struct {
	informers.SharedInformerFactory
	kinds map[reflect.Type]*stillInformer
}

func newStillFactory() *stillFactory {
	return &stillFactory{kinds: map[reflect.Type]*stillInformer{}}
}

func (f *stillFactory) Apps() apps.Interface             { return apps.New(f, "", nil) }
func (f *stillFactory) Core() core.Interface             { return core.New(f, "", nil) }
func (f *stillFactory) Policy() policy.Interface         { return policy.New(f, "", nil) }
func (f *stillFactory) Resource() resource.Interface     { return resource.New(f, "", nil) }
func (f *stillFactory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *stillFactory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// InformerFor is what every typed informer of client-go calls.
func (f *stillFactory) InformerFor(kind runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	informer := f.kinds[reflect.TypeOf(kind)]
	if informer == nil {
		informer = &stillInformer{indexer: cache.NewIndexer(
			cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		)}
		f.kinds[reflect.TypeOf(kind)] = informer
	}
	return informer
}

// put loads an object. A kind that nothing of the scheduler looks at is an error: the world would
// hold something that cannot matter.
func (f *stillFactory) put(object runtime.Object) error {
	informer := f.kinds[reflect.TypeOf(object)]
	if informer == nil {
		return fmt.Errorf("this version's scheduler does not look at %T", object)
	}
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return err
	}
	if _, exists, _ := informer.indexer.GetByKey(key); exists {
		return fmt.Errorf("%T %s is there twice", object, key)
	}
	if err := informer.indexer.Add(object); err != nil {
		return err
	}
	for _, handler := range informer.handlers {
		handler.OnAdd(object, true)
	}
	return nil
}

// stillInformer is one kind's informer. The embedded interface is nil: see stillFactory.
type stillInformer struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
}

func (i *stillInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return alwaysSynced{}, nil
}

func (i *stillInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *stillInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *stillInformer) AddIndexers(indexers cache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
}
func (i *stillInformer) GetIndexer() cache.Indexer       { return i.indexer }
func (i *stillInformer) GetStore() cache.Store           { return i.indexer }
func (i *stillInformer) HasSynced() bool                 { return true }
func (i *stillInformer) IsStopped() bool                 { return false }
func (i *stillInformer) LastSyncResourceVersion() string { return "" }
func (i *stillInformer) Run(<-chan struct{})             {}
func (i *stillInformer) RunWithContext(context.Context)  {}

// alwaysSynced is the registration of a handler that is called while the object is put.
type alwaysSynced struct {
	cache.ResourceEventHandlerRegistration
}

func (alwaysSynced) HasSynced() bool { return true }
