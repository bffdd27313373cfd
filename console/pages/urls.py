"""Addresses of the pages that compose several rooms."""

from django.urls import path

from console.pages import actions, capacity, create, drills, metrics, modes, moved, probes, search, views, webhooks
from console.pages.scripts import actions as script_actions
from console.pages.scripts import views as scripts

urlpatterns = [
    path("healthz", probes.alive, name="healthz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("readyz", probes.ready, name="readyz"),
    path("static/<slug:version>/<path:path>", moved.static_file, name="moved_static_file"),
    path("", views.clusters, name="clusters"),
    path("search", search.search, name="search"),
    path("automation", actions.automation, name="automation"),
    path("capacity", capacity.capacity, name="capacity"),
    path("capacity/parts", capacity.parts, name="capacity_parts"),
    path("capacity/would", capacity.would, name="capacity_would"),
    path("capacity/quota", capacity.quota, name="quota"),
    path("clusters/parts", views.clusters_parts, name="clusters_parts"),
    path("clusters/new", create.new_cluster, name="new_cluster"),
    path("clusters/new/preview", create.preview, name="new_cluster_preview"),
    path("clusters/<uuid:cluster_id>", views.overview, name="cluster"),
    path("clusters/<uuid:cluster_id>/nodes", views.nodes, name="nodes"),
    path("clusters/<uuid:cluster_id>/timeline", views.timeline, name="timeline"),
    path("clusters/<uuid:cluster_id>/older", views.older, name="older"),
    path("clusters/<uuid:cluster_id>/updates", views.updates, name="updates"),
    path("clusters/<uuid:cluster_id>/chart.json", views.chart, name="chart"),
    path("clusters/<uuid:cluster_id>/drills/<uuid:reclaim_id>", drills.drill, name="drill"),
    path("clusters/<uuid:cluster_id>/preview", capacity.preview, name="preview"),
    path("clusters/<uuid:cluster_id>/take", capacity.take, name="take"),
    path("clusters/<uuid:cluster_id>/scripts", scripts.first, name="scripts"),
    path("clusters/<uuid:cluster_id>/scripts/<str:kind>", script_actions.script, name="script"),
    path("clusters/<uuid:cluster_id>/scripts/<str:kind>/restore", script_actions.restore, name="script_restore"),
    path("clusters/<uuid:cluster_id>/scripts/<str:kind>/check", script_actions.check, name="script_check"),
    path("clusters/<uuid:cluster_id>/target", actions.target, name="target"),
    path("clusters/<uuid:cluster_id>/mode", modes.mode, name="mode"),
    path("clusters/<uuid:cluster_id>/cordon", actions.cordon, name="cordon"),
    path("clusters/<uuid:cluster_id>/reclaim", actions.reclaim, name="reclaim"),
    path("webhooks", webhooks.webhooks, name="webhooks"),
    path("webhooks/new", webhooks.new_webhook, name="new_webhook"),
    path("webhooks/<uuid:webhook_id>", webhooks.webhook, name="webhook"),
    path("webhooks/<uuid:webhook_id>/edit", webhooks.edit_webhook, name="edit_webhook"),
    path("webhooks/<uuid:webhook_id>/switch", webhooks.switch_webhook, name="switch_webhook"),
    path("webhooks/<uuid:webhook_id>/test", webhooks.test_webhook, name="test_webhook"),
    path("webhooks/<uuid:webhook_id>/secret", webhooks.renew_secret, name="renew_secret"),
    path("webhooks/<uuid:webhook_id>/delete", webhooks.delete_webhook, name="delete_webhook"),
    path("webhooks/<uuid:webhook_id>/messages/<uuid:delivery_id>", webhooks.webhook_message, name="webhook_message"),
    path("webhooks/<uuid:webhook_id>/messages/<uuid:delivery_id>/resend", webhooks.resend_message, name="resend_message"),
]
