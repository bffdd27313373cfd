"""What a real cluster runs beside its API server: kubelets, scheduler, controllers. All of them only clients of the API."""
